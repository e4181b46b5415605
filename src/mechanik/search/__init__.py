"""Finding answers beyond the descent from one start: closed forms, and searches."""
