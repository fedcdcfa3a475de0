#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the reference data for tests/data with Hugging Face's `tokenizers`.

    python3 -m venv V && V/bin/pip install tokenizers==0.23.3
    V/bin/python scripts/make-tokenizer-reference.py             tests/data/reference/{trained,cases,classes}.json
    V/bin/python scripts/make-tokenizer-reference.py --unicode   core/src/data/tokenizer/unicode_additions.hpp
    V/bin/python scripts/make-tokenizer-reference.py --nfc       core/src/data/tokenizer/nfc_exceptions.hpp
    V/bin/python scripts/make-tokenizer-reference.py --check TRIAX   reads a tokenizer.json that TRIAX trained

The tests need the files only. --unicode takes what Unicode 14 has from Python 3.11's own tables. --nfc needs the
newest Unicode: V/bin/pip install unicodedata2.
"""
import argparse
import itertools
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unicodedata

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
which = parser.add_mutually_exclusive_group()
which.add_argument("--unicode", action="store_true")
which.add_argument("--nfc", action="store_true")
which.add_argument("--check", metavar="TRIAX")
ARGUMENTS = parser.parse_args()  # before `tokenizers` is imported: --help does not need it

import tokenizers  # noqa: E402
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests/data/reference"
CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CATEGORIES = "L Lu Ll Lt Lm Lo M N Nd Nl No P S Z".split()
EOT = "<|endoftext|>"

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
DIGIT = "[\\p{N}\U00011DE0-\U00011DE9\U00016FF4-\U00016FF6]"
WORD = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
O200K = (r"[^\r\n\p{L}\p{N}]?" + WORD + r"*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?" +
         WORD + r"+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)"
          r"|\s+")


def split(pattern, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}


def byte_level(prefix, regex):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def digits(individual):
    return {"type": "Digits", "individual_digits": individual}


def sequence(*splits, prefix=False):
    return {"type": "Sequence", "pretokenizers": [*splits, byte_level(prefix, False)]}


def added(content, number, special=True, normalized=False):
    return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": normalized, "special": special}


MORE_TOKENS = [added(EOT, 0), added("<|a|>", 1000), added("<|a|>b", 1001), added("two words", 1002, False),
               added("\u00e9\U0001F600", 1003, False, True), added(" the", 1004, False, True), added("<|", 1005)]

NFC_TOKENS = [added(EOT, 0), added("<|a|>", 1000), added("e\u0301x", 1001, False, True), added("\u00e9y", 1002, False),
              added("\u212b", 1003, True, True), added("A\u030a", 1004, False, True), added("o\u0308", 1005, False)]
NFC = {"type": "NFC"}
# Marks and characters that begin them, Hangul, characters that NFC always changes, and newer ones than `tokenizers`
# knows.
NFC_POOL = ("aeoA \u00e9\u1e69ss\u0338>=\u0301\u0301\u0308\u030a\u0323\u0323\u0307\u0345\u0334\u0327\u0331"
            "\u1100\u1112\u1161\u1175\u11a7\u11a8\u11c2\uac00\uac01\ud7a3\u212b\u2126\u037e\u0958\u0915\u093c\u0344"
            "\u0f73\u0f71\u0f72\u304b\u3099\u309a\u2adc\ufb1d\U0001d15e\U0002f800\u09c7\u09be\u0cc6\u0cc2\u0cd5"
            "\u08cb\u1ac1\U00011935\U00011930\U000105d2\U0001e4ec")
NFC_AFTER = ("\u0300 \u0301 \u0302 \u0303 \u0304 \u0306 \u0307 \u0308 \u0309 \u030a \u030b \u030c \u0323 "
             "\u0327 \u0338 \u0342 \u0345 \u05bc \u093c \u09be \u1161 \u11a7 \u11a8 \u3099 \u0323\u0301 \u0334\u0300").split()

# Changes to the trained tokenizer.json: top-level keys, and keys of its model.
VARIANTS = {
    "gpt2": {},
    "prefix": {"pre_tokenizer": byte_level(True, True)},
    "one word": {"pre_tokenizer": byte_level(False, False)},
    "llama3": {"pre_tokenizer": sequence(split(LLAMA3)), "model": {"ignore_merges": True}},
    "qwen2": {"pre_tokenizer": sequence(split(QWEN2))},
    "o200k": {"pre_tokenizer": sequence(split(O200K))},
    "cl100k": {"pre_tokenizer": sequence(split(CL100K, "Removed", True))},
    "several splits": {"pre_tokenizer": sequence(split(r"\p{N}{1,3}"), split("[\u4E00-\u9FA5\u3040-\u309F]+"),
                                                 split(LLAMA3), prefix=True)},
    "letters alone": {"pre_tokenizer": sequence(split(r"\p{L}+", "Removed", True))},
    "added tokens": {"added_tokens": MORE_TOKENS},
    "added tokens, prefix": {"added_tokens": MORE_TOKENS, "pre_tokenizer": byte_level(True, True)},
    "added tokens, llama3": {"added_tokens": MORE_TOKENS, "pre_tokenizer": sequence(split(LLAMA3))},
    "smollm": {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [digits(True), byte_level(False, True)]}},
    "runs of digits": {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        digits(False), split(r"\s+"), byte_level(True, True)]}},
    "nfc": {"normalizer": {"type": "Sequence", "normalizers": [NFC]}},
    "nfc, qwen2": {"normalizer": NFC, "added_tokens": NFC_TOKENS, "pre_tokenizer": sequence(split(QWEN2))},
    "nfc, prefix": {"normalizer": NFC, "added_tokens": NFC_TOKENS, "pre_tokenizer": sequence(
        digits(True), split(r"\p{L}+", "Removed", True), prefix=True)},
}


def texts():
    out = [
        "", " ", "  ", "a", " a", "a ", "\n", "\n\n", "\r\n", "\t", "\0", "a\0b", "Hello world", "Hello, world! It's 9.5 %.",
        "I'm you're he'll we've they'd it's don't O'Neill'S I'M YOU'RE HE'LL WE'VE THEY'D DON'T 'tis ''' '\u017f 'LL'll",
        "a  b   c    d", "a\n\n\nb", "a \n \n b", "x\r\ny\r\n\r\nz\r", "\t\tif (a) {\n\t\t\treturn;\n\t\t}\n", " \n  x",
        "a\u0085b\u00a0c\u3000d\u2028e\u2029f\u202fg\u205fh\u1680i\u2003j\u180ek\u200bl\ufeffm", "\u00a0\u00a0x \u3000\u3000y",
        "a\vb\fc\x1cd\x1de\x1ef\x1fg\x7fh", "naïve café e\u0301 A\u030a n\u0303", "\u0301\u0302 \u0303", "한국어 텍스트 \u1112\u1161\u11ab",
        "日本語のテキスト、カタカナ。漢字", "中文文本,没有空格。", "Привет, мир! Ёлка", "Ελληνικά κείμενο", "שלום עולם", "مرحبا بالعالم ١٢٣",
        "हिन्दी में पाठ १२३", "ไทย ภาษา ๑๒๓", "தமிழ் உரை", "አማርኛ ጽሑፍ", "ქართული", "Հայերեն", "ᏣᎳᎩ ꮳꮃꭹ", "ⅧⅨ ½ ¾ ² ³ ① ⑳ 〇 ㊿",
        "123 1234567 1,234.56 ١٢٣٤ ۱۲۳ 𝟘𝟙𝟚 ৩৪", "👍 👍🏽 👨‍👩‍👧‍👦 🇩🇪🇫🇷 ❤️ ☺ 1️⃣ 🏴󠁧󠁢󠁳󠁣󠁴󠁿", "a👍b 👍c👍 d", "ﬁ ﬂ ﬃ ß ẞ ſ İ ı Ǆ ǅ ǆ", "\u1c89\u1c8a \U00010d4a\U00010d40 \U0001e4f0 \ua7dc",
        "\U000323af \U00031350 \u0378 \ue000 \ufffd \uffff \U0010ffff", "$100 €5 £3 ¥7 #tag @user a_b c-d e/f g\\h", "!!! ??? ... --- ___ ***",
        "http://example.org/a?b=c&d=%20#e", "def f(x):\n    return x ** 2  # comment\n", "word" * 20, "ab" * 100, "aaaaaaaaaaaa" * 20,
        " " * 100 + "x", "x" + " " * 100, "\n" * 50 + " y", "1" * 100, "." * 100, "é" * 90, "the the the theatre other breathe",
        EOT, "a" + EOT + "b", EOT + EOT, " " + EOT + " ", "<|endoftext|", "<|endoftext", "x <|a|> y", "<|a|>b<|a|><|a|>bb", "<|a|", "two words",
        "two  words", "two words two wordstwo words", "\u00e9\U0001F600 \u00e9 \U0001F600", "in the end of the", "\tx" + EOT + "\ty", EOT + "\n" + EOT + " z",
        "A" + EOT + " the b", "<|<|a|>", "supercalifragilisticexpialidocious antidisestablishmentarianism " * 4,
    ]
    random_state = random.Random(5)
    pools = ["abcdefgh     \n", "ab'strevmld 'S", " \t\r\n\u00a0\u3000x", "aé中👍1\u0301 .!\n", "ABab12.,/ \r\n", "<|a>b endofxt"]
    for pool, length in itertools.product(pools, (8, 40, 120)):
        for _ in range(2 if length < 100 else 1):
            out.append("".join(random_state.choice(pool) for _ in range(length)))
    for _ in range(3):
        out.append("".join(random_state.choice(CHARACTERS) for _ in range(30)))
    return out + nfc_texts(random_state)


def nfc_texts(random_state):
    out = ["cafe\u0301 A\u030angstro\u0308m \u212b \u2126", "e\u0301\u0323 e\u0323\u0301 \u1eb9\u0301 \u00e9\u0323 e\u0301\u0301",
           "\u1112\u1161\u11ab\u1100\u1173\u11af \ud558\u11ab \uac00\u11a7 \uac01\u11a8", "\u304b\u3099\u304d\u3099 \u0958 \u0915\u093c",
           EOT + "\u0338" + EOT + "\u0301a\u0301", "<|a|>\u0338 <|a|\u0338> >\u0338", "e\u0301x \u00e9x e\u0301y \u00e9y e\u0301\u0323x",
           "\u212b A\u030a \u00c5 \u00c5\u0301 o\u0308 \u00f6 oo\u0308o", "a\u0301\u0302\u0303\u0304\u0305" * 20, "e\u0323\u0301" * 60,
           "\u0301\u0323" * 40, "\u0323\u0301" * 40 + "b", "a\u08cb\u0323 \u1ac1\u0323 \U00011935\U00011930 \U000105d2\u0307 \u0715",
           "To\u0302i co\u0301 the\u0302\u0309 a\u0306n thu\u0309y tinh ma\u0300 kho\u0302ng ha\u0323i gi\u0300 . ",
           "12\u0663\u00bd\u2167 3a45 \U00011de0\U00011de9\U00016ff4\U00016ff6\U00016ff7 6"]
    for length in (6, 6, 12, 12, 30, 30, 30, 100, 100):
        out.append("".join(random_state.choice(NFC_POOL) for _ in range(length)))
    return out


def train(corpus, vocabulary, least):
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel(add_prefix_space=False)
    made.train_from_iterator([corpus], trainers.BpeTrainer(
        vocab_size=vocabulary, min_frequency=least, special_tokens=[EOT], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return made


def patched(base, patch):
    out = base | patch
    out["model"] = base["model"] | patch.get("model", {})
    return out


def write(name, content):
    text = json.dumps(content, separators=(",", ":"))
    (FOLDER / name).write_text(text.replace('],"', '],\n"').replace('},{"t', '},\n{"t') + "\n")
    print(f"{FOLDER / name}: {(FOLDER / name).stat().st_size} bytes")


def members(pattern):
    found = pre_tokenizers.Split(Regex(pattern), behavior="removed", invert=True)
    out = set()
    for first in range(0, len(CHARACTERS), 4096):
        for piece, _ in found.pre_tokenize_str("".join(CHARACTERS[first:first + 4096])):
            out.update(map(ord, piece))
    return sorted(out)


def fnv(numbers):
    hash_ = 0xCBF29CE484222325
    for number in numbers:
        for shift in (0, 8, 16):
            hash_ = ((hash_ ^ (number >> shift & 0xFF)) * 0x100000001B3) & (2**64 - 1)
    return f"{hash_:016x}"


def make_reference():
    corpus = (FOLDER / "corpus.txt").read_text()
    trained = json.loads(train(corpus, 1000, 2).to_str())
    write("trained.json", trained)
    cases, first = [], None
    for name, patch in VARIANTS.items():
        tokenizer = Tokenizer.from_str(json.dumps(patched(trained, patch)))
        of = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts()]
        first = first or of
        # null: the same as for the first tokenizer
        ids = [None if cases and mine == its else mine for mine, its in zip(of, first)]
        cases.append({"tokenizer": name, "patch": patch, "ids": ids})
    write("cases.json", {"texts": texts(), "cases": cases})
    patterns = {c: rf"\p{{{c}}}" for c in CATEGORIES} | {"white space": r"\s"}
    classes = {}
    for name, pattern in patterns.items():
        found = members(pattern)
        classes[name] = {"pattern": pattern, "count": len(found), "fnv": fnv(found)}
    found = sorted({t for c in CHARACTERS for t in [f"'{c}"]
                    if pre_tokenizers.Split(Regex("(?i:'s)"), "removed", True).pre_tokenize_str(t)})
    classes["apostrophe s"] = found
    alone = pre_tokenizers.Digits(individual_digits=True)
    found = sorted({ord(c) for c in CHARACTERS if len(alone.pre_tokenize_str(f"a{c}b")) > 1})
    classes["digit"] = {"pattern": DIGIT, "count": len(found), "fnv": fnv(found)}
    nfc = normalizers.NFC().normalize_str
    below = CHARACTERS[:0x2f800]  # to U+2FFFF; no later character changes
    classes["nfc"] = [{"after": after, "fnv": fnv([ord(c) for start in below for c in nfc(f"\u0345{start}{after}")])}
                      for after in ["", *NFC_AFTER]]
    write("classes.json", classes)


def ranges(numbers):
    out = []
    for number in numbers:
        if out and out[-1][1] == number - 1:
            out[-1][1] = number
        else:
            out.append([number, number])
    return out


def rows(items):
    out, line = [], "   "
    for item in items:
        if len(line) + len(item) + 2 > 118:
            out.append(line)
            line = "   "
        line += f" {item},"
    return "\n".join([*out, line])


def make_unicode():
    assert unicodedata.unidata_version == "14.0.0", unicodedata.unidata_version
    file = ROOT / "core/src/data/tokenizer/unicode_additions.hpp"
    head = file.read_text().split("// clang-format off\n")[0]
    body, names = "", []
    for category in CATEGORIES:
        now = set(members(rf"\p{{{category}}}"))
        then = {ord(c) for c in CHARACTERS if unicodedata.category(c).startswith(category)}
        assert not then - now, f"{category}: characters were taken away"
        new = ranges(sorted(now - then))
        names.append(f'{{"{category}", {"kAdded" + category if new else "{}"}}}')
        if new:
            items = [f"{{0x{a:X}, 0x{b:X}}}" for a, b in new]
            body += f"inline constexpr CharacterRange kAdded{category}[] = {{\n{rows(items)}\n}};\n"
    body += ("// clang-format on\n\n/// The categories that a pattern may name.\n"
             f"inline constexpr CategoryAddition kCategories[] = {{\n{rows(names)[:-1]}\n}};\n\n"
             "} // namespace triax::data\n")
    file.write_text(head + "// clang-format off\n" + body)


def make_nfc():
    """Characters that newer versions of Unicode order or compose, and `tokenizers` does not."""
    import unicodedata2 as newest
    nfc = normalizers.NFC().normalize_str
    ordered = {c for c in CHARACTERS if newest.combining(c)}
    unordered = {c for c in ordered if nfc(f"\u0345{c}\u0334") == f"\u0345{c}\u0334"}
    parts = {c: newest.normalize("NFD", c) for c in CHARACTERS if not 0xAC00 <= ord(c) < 0xD7A4}
    parts = {c: of for c, of in parts.items() if of != c}
    known = {c for c, of in parts.items() if nfc(of) != of or nfc(c) != c}
    used = set("".join(parts[c] for c in known)) | known | (ordered - unordered)
    found = unordered | {"\u11a7"} | (set(parts) | set("".join(parts.values()))) - used
    found = [ord(c) for c in found]
    items = [f"{{0x{a:X}, 0x{b:X}}}" for a, b in ranges(sorted(found))]
    file = ROOT / "core/src/data/tokenizer/nfc_exceptions.hpp"
    head = file.read_text().split("// clang-format off\n")[0]
    file.write_text(f"{head}// clang-format off\ninline constexpr CharacterRange kNotInNfc[] = {{\n{rows(items)}\n}};\n"
                    "// clang-format on\n\n} // namespace triax::data\n")


def check(triax):
    """What `triax data train-tokenizer` writes is what `tokenizers` trains, and encodes alike there."""
    corpus = (FOLDER / "corpus.txt").read_text()
    with tempfile.TemporaryDirectory() as folder:
        for vocabulary, least in ((300, 2), (1000, 2), (1500, 1), (5000, 1)):
            file = pathlib.Path(folder) / "made.json"
            subprocess.run([triax, "data", "train-tokenizer", "--input", FOLDER / "corpus.txt", "--vocab", str(vocabulary),
                            "--min-count", str(least), "--output", file, "--force"], check=True, stdout=subprocess.DEVNULL)
            ours, theirs = Tokenizer.from_file(str(file)), train(corpus, vocabulary, least)
            mine, other = json.loads(ours.to_str()), json.loads(theirs.to_str())
            for key in ("vocab", "merges"):
                assert mine["model"][key] == other["model"][key], f"{key} of {vocabulary} tokens differ"
            assert ours.get_vocab() == theirs.get_vocab()
            for text in texts():
                assert ours.encode(text).ids == theirs.encode(text).ids, repr(text)
                assert ours.decode(ours.encode(text).ids, skip_special_tokens=False) == text, repr(text)
            print(f"{vocabulary} tokens, min-count {least}: the same as `tokenizers` {tokenizers.__version__}")


if __name__ == "__main__":
    if ARGUMENTS.unicode:
        make_unicode()
    elif ARGUMENTS.nfc:
        make_nfc()
    elif ARGUMENTS.check:
        check(ARGUMENTS.check)
    else:
        make_reference()
