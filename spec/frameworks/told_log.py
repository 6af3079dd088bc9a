"""Reads what a training has told: one JSON object a line, the last one perhaps cut off by a kill."""
import json


def read(path):
    try:
        with open(path, encoding="utf-8") as f:
            lines = f.read().split("\n")
    except FileNotFoundError:
        return []
    told = []
    for line in lines:
        try:
            told.append(json.loads(line))
        except ValueError:
            pass
    return told
