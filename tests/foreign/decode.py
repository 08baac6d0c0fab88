"""Reads the messages of fixtures/messages.csv with pyiso8583, a decoder of other people.

Prints a JSON object a line for every line of the file:
  {"id": ..., "mti": ..., "fields": {number: value}}   read to its exact end
  {"id": ..., "cannot": reason}                        pyiso8583 has no way to say what the table says
  {"id": ..., "keepalive": true}                       no message
Anything else that goes wrong ends the script.

The layout comes from the same tables that tollgate reads (src/iso8583/presets, with the lines of
fixtures/overrides.csv in place of theirs); what is read along it is pyiso8583's affair. Framing and
headers are one header of so many bytes for it.
"""

import csv
import json
import pathlib
import sys

import iso8583

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Bytes before the MTI, and after the last field.
FRAMINGS = {
    "none": (0, 0),
    "header:9(EBCDIC 1ROUTENET)": (9, 0),
    "base24:ISO+9": (12, 0),
    "be16": (2, 0),
    "be16_incl": (2, 0),
    "be16+base24:ISO+9": (14, 0),
    "be16+tpdu5": (7, 0),
    "be16_incl+tpdu5": (7, 0),
    "be16+tpdu5+hdr6": (13, 0),
    "be16+etx": (2, 1),
    "be24": (3, 0),
    "be32": (4, 0),
    "vmlh4": (4, 0),
    "vmlh4+visa22": (26, 0),
    "vmlh4+visa26reject+visa22": (52, 0),
    "gicc4": (4, 0),
    "rbp6": (6, 0),
    "ascii4": (4, 0),
    "ascii6": (6, 0),
    "hex4": (4, 0),
    "bcd2": (2, 0),
    "bcd2+tpdu5": (7, 0),
    "etx": (0, 1),
}

CODECS = {"ascii": "ascii", "ebcdic": "cp500", "hex_ascii": "ascii", "hex_ebcdic": "cp500"}


class Cannot(Exception):
    """The table says what pyiso8583 has no way to say."""


class Spec(dict):
    """The specification of a message. A field that pyiso8583 cannot express counts only where a
    message has it."""

    def __init__(self, rows):
        super().__init__()
        self.rows = rows
        bitmap = rows["1"]
        if bitmap["len_kind"] != "bitmap":
            raise Cannot("two words of bitmap without a first bit that says so")
        bits = {"bin": "b"}.get(bitmap["data_enc"]) or CODECS[bitmap["data_enc"]]
        mti = {"bcd": "b"}.get(rows["0"]["data_enc"]) or CODECS[rows["0"]["data_enc"]]
        self["h"] = {"data_enc": "b", "len_enc": "b", "len_type": 0, "max_len": 0}
        self["t"] = {"data_enc": mti, "len_enc": "b", "len_type": 0, "max_len": 4}
        self["p"] = {"data_enc": bits, "len_enc": "b", "len_type": 0, "max_len": 8}
        self["1"] = {"data_enc": bits, "len_enc": "b", "len_type": 0, "max_len": 8}

    def __missing__(self, field):
        return entry(self.rows[field])


def entry(row):
    """What pyiso8583 is told of one field."""
    longest = int(row["max"])
    letters = 0 if row["len_kind"] == "fixed" else len(row["len_kind"])
    pairs = (letters + 1) // 2
    len_enc, len_type = {
        "none": ("b", 0),
        "ascii": ("ascii", letters),
        "ebcdic": ("cp500", letters),
        "bcd": ("bcd", pairs),
        "bin": ("b", pairs),
    }[row["len_enc"]]
    told = {"len_enc": len_enc, "len_type": len_type, "max_len": longest, "len_count": "bytes"}
    data = row["data_enc"]
    if data in ("ascii", "ebcdic"):
        told["data_enc"] = CODECS[data]
    elif data in ("hex_ascii", "hex_ebcdic"):
        if len_type:
            raise Cannot("a length that counts the bytes that hexadecimal digits stand for")
        told.update(data_enc=CODECS[data], max_len=2 * longest)
    elif data == "bin":
        told["data_enc"] = "b"
    elif data in ("bcd", "bcd_z"):
        told["data_enc"] = "b"
        if row["unit"] == "digits":
            told["len_count"] = "nibbles"
            told.update({"left0": {"left_pad": "0"}, "right0": {"right_pad": "0"}}.get(row["pad"], {}))
    elif data == "x_ascii+bcd":
        if len_type or longest % 2 == 0:
            raise Cannot("a sign and digits in pairs, of any length")
        # Bytes for it; which of them is the sign is said below.
        told.update(data_enc="b", max_len=1 + longest // 2)
    else:
        raise Cannot("data in " + data)
    return told


def shown(row, value):
    """A value as the fixtures write it: pyiso8583 shows all bytes as hexadecimal digits."""
    if row["data_enc"] == "bcd_z":
        return value.replace("D", "=")
    if row["data_enc"] == "x_ascii+bcd":
        return chr(int(value[:2], 16)) + value[2:]
    return value


def table(path):
    with path.open(encoding="ascii", newline="") as file:
        return list(csv.DictReader(file))


def layout(dialect, rows):
    """A preset by field, with these lines in place of its own."""
    columns = "de,content,len_kind,len_enc,data_enc,max,unit,pad,name".split(",")
    preset = {row["de"]: row for row in table(ROOT / f"src/iso8583/presets/{dialect}.csv")}
    for row in rows:
        fields = dict(zip(columns, row.split(",", len(columns) - 1), strict=True))
        preset[fields["de"]] = fields
    return preset


def read(message, overrides):
    if message["expected"] == "KEEPALIVE":
        return {"keepalive": True}
    rows = layout(message["dialect"], [line["row"] for line in overrides if line["id"] == message["id"]])
    before, after = FRAMINGS[message["framing"]]
    frame = bytes.fromhex(message["hex"])
    try:
        spec = Spec(rows)
        spec["h"]["max_len"] = before
        decoded, _ = iso8583.decode(frame[: len(frame) - after], spec)
    except Cannot as reason:
        return {"cannot": str(reason)}
    fields = {de: shown(rows[de], value) for de, value in decoded.items() if de.isdigit() and de != "1"}
    return {"mti": decoded["t"], "fields": fields}


def main():
    overrides = table(ROOT / "fixtures/overrides.csv")
    for message in table(ROOT / "fixtures/messages.csv"):
        try:
            outcome = read(message, overrides)
        except iso8583.DecodeError as error:
            sys.exit(f"{message['id']}: {error}")
        print(json.dumps({"id": message["id"], **outcome}))


main()
