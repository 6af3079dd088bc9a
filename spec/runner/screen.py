#!/usr/bin/python3 -IS
"""Shows what stood on a terminal in the end, row by row, with all that was scrolled away above it.

  screen.py COLUMNS <BYTES

BYTES is what programs wrote to it. It knows what lines need: carriage return, line feed, the erasing of
a row from the cursor on, and the row's end, at which the cursor waits in the last column until the next
character comes. Anything else is an error: nobody is to write it.
"""
import re
import sys


def rows_of(text, columns):
    rows, row, column, waits = [[]], 0, 0, False
    for token in re.findall(r"\x1b\[K|\r|\n|[^\x00-\x1f]|[\x00-\x1f]", text):
        if token == "\x1b[K":
            del rows[row][column:]
        elif token == "\r":
            column, waits = 0, False
        elif token == "\n":
            row, waits = row + 1, False
        elif token < " ":
            sys.exit(f"screen.py: {token!r} is nothing for a line")
        else:
            if waits:
                row, column, waits = row + 1, 0, False
            while len(rows) <= row:
                rows.append([])
            line = rows[row]
            line.extend(" " * (column + 1 - len(line)))
            line[column] = token
            waits = column + 1 == columns
            column += not waits
        while len(rows) <= row:
            rows.append([])
    return ["".join(row).rstrip() for row in rows]


for line in rows_of(sys.stdin.buffer.read().decode(), int(sys.argv[1])):
    print(line)
