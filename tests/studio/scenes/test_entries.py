"""Entries of the start page."""

import mechanik as mk
from mechanik.studio.scenes import SCENES, start_page_entries
from mechanik.studio.scenes.scene_registry import GALLERY_CAPTIONS


def test_scenes_come_first_and_then_the_whole_gallery():
    offered = start_page_entries()
    assert [entry.name for entry in offered if entry.kind == "scene"] == list(SCENES)
    assert [entry.kind for entry in offered] == ["scene"] * len(SCENES) + ["gallery"] * len(mk.gallery.names())
    assert {entry.name for entry in offered if entry.kind == "gallery"} == set(mk.gallery.names())


def test_each_has_a_title_a_sentence_and_a_picture_of_its_own():
    offered = start_page_entries()
    assert set(GALLERY_CAPTIONS) == set(mk.gallery.names())
    assert all(entry.title and entry.about.endswith(".") and len(entry.about) < 140 for entry in offered)
    assert len({entry.picture for entry in offered}) == len(offered)


def test_every_scene_says_in_two_to_four_sentences_what_to_do():
    for scene in SCENES.values():
        assert 2 <= scene.about.count(". ") + 1 <= 4, scene.name
