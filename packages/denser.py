"""Writes a wheel again with the same files, compressed more closely than zlib does at its best:
python denser.py WHEEL"""

import os
import sys
import zipfile

import zopfli

wheel = sys.argv[1]
denser = wheel + ".denser"
with zipfile.ZipFile(wheel) as there, zopfli.ZipFile(
    denser, "w", zipfile.ZIP_DEFLATED, iterations=1
) as made:
    for info in there.infolist():
        made.writestr(info, there.read(info))
with zipfile.ZipFile(wheel) as there, zipfile.ZipFile(denser) as made:
    for old, new in zip(there.infolist(), made.infolist(), strict=True):
        if (old.filename, old.CRC, old.external_attr, there.read(old)) != (
            new.filename, new.CRC, new.external_attr, made.read(new)
        ):
            sys.exit(f"{old.filename} is another file when it is compressed again")
os.replace(denser, wheel)
