# SPDX-License-Identifier: Apache-2.0
"""Machine code of kernels: registers, shared memory and loops, from the output of cuobjdump and nvdisasm."""

import collections
import functools
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess

from gpu_profile_counts import ProfileError

FUNCTION = re.compile(r"Function : (\S+)")
INSTRUCTION = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?);")
RESOURCES = re.compile(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")
JUMP = re.compile(r"\bBRA\b.*?(0x[0-9a-f]+)")
PREDICATE = re.compile(r"^@!?U?P\w+\s+")
# By the begin of the opcode; the first that fits. What fits none is "other".
KINDS = (("mma", r"[HIQD]MMA|HGMMA|BMMA"), ("global", r"LDG|STG|ATOMG?\b|REDG?\b|LD\b|ST\b"),
         ("shared", r"LDS|STS|ATOMS"),
         ("local", r"LDL|STL"), ("special", r"MUFU"), ("convert", r"F2|I2|FRND"), ("compare", r"[IFHD]SETP|PSETP|PLOP3|F?SEL"),
         ("warp", r"SHFL|VOTE|REDUX|MATCH"), ("barrier", r"BAR|WARPSYNC|DEPBAR|LDGDEPBAR|MEMBAR|ERRBAR"),
         ("branch", r"BRA|EXIT|BSSY|BSYNC|BREAK|CALL|RET|NOP"), ("move", r"MOV|S2R|S2UR|CS2R|LDC|R2UR"),
         ("uniform", r"U[A-Z]"), ("float", r"F(?!LO)[A-Z]|H[A-Z]|D[A-Z]"),
         ("integer", r"I[A-Z]|VI|LOP|LEA|SHF|SHL|SHR|PRMT|BMSK|FLO|POPC|BREV|P2R|R2P|VABSDIFF|SGXT"))
KINDS = tuple((kind, re.compile(opcode)) for kind, opcode in KINDS)


def kind_of(opcode):
    # LDGDEPBAR begins as LDG does, and LDGSTS is a global access.
    if opcode.startswith("LDGDEPBAR"):
        return "barrier"
    return next((kind for kind, begins in KINDS if begins.match(opcode)), "other")


def parse_sass(text):
    """Instructions of each function: address and text."""
    functions, current = {}, None
    for line in text.splitlines():
        if found := FUNCTION.search(line):
            current = functions.setdefault(found[1], [])
        elif current is not None and (found := INSTRUCTION.match(line)):
            current.append((int(found[1], 16), found[2].strip()))
    return functions


def parse_resources(text):
    return {name: {"registers": int(registers), "stack_bytes": int(stack), "static_shared_bytes": int(shared)}
            for name, registers, stack, shared, _ in RESOURCES.findall(text)}


def count_kinds(instructions):
    counts = collections.Counter(kind_of(PREDICATE.sub("", text).split()[0]) for _, text in instructions)
    return dict(counts.most_common())


def main_loops(instructions):
    """Loops without a loop in them; of those with products, the ones without another that has products. A branch to an
    earlier address ends a loop. Sorted by products, then by size."""
    ranges = set()
    for address, text in instructions:
        found = JUMP.search(text)
        if found and int(found[1], 16) < address:
            ranges.add((int(found[1], 16), address))
    loops = []
    for first, last in ranges:
        body = [one for one in instructions if first <= one[0] <= last]
        kinds = count_kinds(body)
        loops.append({"first": first, "last": last, "instructions": len(body), "mma": kinds.get("mma", 0), "kinds": kinds})
    inner = [loop for loop in loops
             if not any(other is not loop and loop["first"] <= other["first"] and other["last"] <= loop["last"]
                        and (other["mma"] or not loop["mma"]) for other in loops)]
    return sorted(inner, key=lambda loop: (-loop["mma"], -loop["instructions"], loop["first"]))


def describe(instructions):
    kinds = count_kinds(instructions)
    return {"instructions": len(instructions), "kinds": kinds, "local_accesses": kinds.get("local", 0),
            "loops": main_loops(instructions)}


class Tools:
    """cuobjdump with nvdisasm beside it, and ptxas. Throws ProfileError with what to install."""

    def __init__(self, cuobjdump=None, otherwise=""):
        """`otherwise`: how the user does without machine code."""
        self.otherwise = otherwise
        self.cuobjdump = self._find("cuobjdump", cuobjdump)

    @functools.cached_property
    def ptxas(self):
        return self._find("ptxas") # only for PTX

    def _find(self, name, given=None):
        folders = [os.environ.get("CUDA_HOME", "") + "/bin" if os.environ.get("CUDA_HOME") else None,
                   "/usr/local/cuda/bin"]
        triton = importlib.util.find_spec("triton")
        if triton and triton.submodule_search_locations:
            folders.append(f"{triton.submodule_search_locations[0]}/backends/nvidia/bin")
        found = shutil.which(given or name) or (None if given else next(
            (f"{folder}/{name}" for folder in folders if folder and os.access(f"{folder}/{name}", os.X_OK)), None))
        if given and not found:
            raise ProfileError(f"--cuobjdump {given}: not a program; name that of NVIDIA's toolkit{self.otherwise}")
        if not found:
            raise ProfileError(f"{name} is not found in PATH, CUDA_HOME, /usr/local/cuda and python3's triton; install "
                               f"NVIDIA's toolkit or the PyPI package triton{self.otherwise}")
        return found

    def run(self, tool, *arguments, cwd=None):
        # nvdisasm is beside cuobjdump, which looks for it in PATH.
        path = f"{pathlib.Path(self.cuobjdump).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run([tool, *arguments], capture_output=True, text=True, cwd=cwd, env=os.environ | {"PATH": path})
        if done.returncode != 0:
            raise ProfileError(f"{tool} failed: {done.stderr.strip()[-500:]}")
        return done.stdout

    def code_of(self, files, names):
        """Description of each function of the library or cubin files that is asked for."""
        found = {}
        for file in files:
            sass = parse_sass(self.run(self.cuobjdump, "-sass", file))
            resources = parse_resources(self.run(self.cuobjdump, "-res-usage", file))
            for name in names:
                if name in sass and name in resources and name not in found:
                    found[name] = describe(sass[name]) | resources[name]
        return found

    def cubins(self, library, arch, names, folder):
        """Cubins of the library for `arch`: those that it contains, else what ptxas makes of its PTX for `names`."""
        folder.mkdir()
        listed = self.run(self.cuobjdump, "-lelf", library)
        if f".{arch}.cubin" in listed:
            self.run(self.cuobjdump, "-xelf", arch, library.resolve(), cwd=folder)
            return sorted(folder.glob("*.cubin")), "cubins of the library"
        self.run(self.cuobjdump, "-xptx", "all", library.resolve(), cwd=folder)
        for ptx in sorted(folder.glob("*.ptx")):
            text = ptx.read_text()
            entries = [word for name in names if f".entry {name}(" in text for word in ("-e", name)]
            if entries:
                self.run(self.ptxas, f"-arch={arch}", *entries, "-o", ptx.with_suffix(f".{arch}.cubin"), ptx)
        return sorted(folder.glob("*.cubin")), "PTX of the library, by ptxas"


def machine_code(tools, libraries, names, arch, folder):
    """By kernel: its machine code for `arch`, with its origin. Throws ProfileError if a kernel has none."""
    found = {}
    for library in libraries:
        cubins, origin = tools.cubins(library, arch, names, folder / f"{library.stem}-{arch}")
        of_library = tools.code_of(cubins, [name for name in names if name not in found])
        found |= {name: one | {"origin": origin} for name, one in of_library.items()}
        if len(found) == len(names):
            return found
    missing = next(name for name in names if name not in found)
    raise ProfileError(f"no machine code for {arch} of {missing} in {', '.join(map(str, libraries))}; "
                       "build with --no-compress, as the preset dev does")
