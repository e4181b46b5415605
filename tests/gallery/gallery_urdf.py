"""Independent forward kinematics of a URDF: revolute, prismatic and fixed joints."""

import math
import xml.etree.ElementTree as ElementTree

import numpy as np


def _turn(axis, angle):
    x, y, z = axis
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    X = np.eye(4)
    X[:3, :3] = np.eye(3) + math.sin(angle) * K + (1 - math.cos(angle)) * K @ K
    return X


def _numbers(element, attribute):
    return [float(word) for word in element.get(attribute).split()]


class TinyUrdf:
    """In: the path of a URDF whose joints are listed base first. Out: poses of links, limits of joints."""

    def __init__(self, path):
        self.joints = ElementTree.parse(path).getroot().findall("joint")
        self.names = [joint.get("name") for joint in self.joints if joint.get("type") != "fixed"]

    def poses(self, values):
        children = {joint.find("child").get("link") for joint in self.joints}
        X = {link: np.eye(4) for link in {j.find("parent").get("link") for j in self.joints} - children}
        for joint in self._topological():
            origin, place = joint.find("origin"), np.eye(4)
            place[:3, 3] = _numbers(origin, "xyz")
            r, p, y = _numbers(origin, "rpy")
            place = place @ _turn((0, 0, 1), y) @ _turn((0, 1, 0), p) @ _turn((1, 0, 0), r)
            if joint.get("type") == "revolute":
                place = place @ _turn(_numbers(joint.find("axis"), "xyz"), values[joint.get("name")])
            elif joint.get("type") == "prismatic":
                place[:3, 3] += place[:3, :3] @ _numbers(joint.find("axis"), "xyz") * values[joint.get("name")]
            X[joint.find("child").get("link")] = X[joint.find("parent").get("link")] @ place
        return X

    def limits(self):
        moving = [joint for joint in self.joints if joint.get("type") != "fixed"]
        return {j.get("name"): tuple(float(j.find("limit").get(side)) for side in ("lower", "upper")) for j in moving}

    def _topological(self):
        waiting = list(self.joints)
        known = {j.find("parent").get("link") for j in waiting} - {j.find("child").get("link") for j in waiting}
        while waiting:
            joint = next(j for j in waiting if j.find("parent").get("link") in known)
            known.add(joint.find("child").get("link"))
            waiting.remove(joint)
            yield joint
