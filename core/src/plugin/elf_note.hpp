// SPDX-License-Identifier: Apache-2.0
// Reads a plugin's file without loading it: whether it is a shared library for this machine, its ELF note from
// TRIAX_PLUGIN, and the libraries it needs. Done before loading, because a library with another sanitizer ends the
// process in dlopen, and because the note can explain why a library does not load.
//
// Threads: any. Blocking: reads the file. Errors: Error if the file is not a library for this machine.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace triax::plugin {

/// "triax=0.1.0;abi=1.1;libstdc++-cxx11abi1;sanitizer=none;c++20;release=12", parsed.
struct Note {
  std::string text; // empty: the file has no note, which is allowed for a plugin in C
  std::string triax;
  std::string abi;
  std::string toolchain;
};

Note parse_note(std::string_view text);

struct ElfFile {
  Note note;
  std::vector<std::string> needed; // DT_NEEDED: "libtriax_core.so.0.1", ...
  // Where the dynamic linker searches for them; the file's folder is written $ORIGIN. Empty: the file has none.
  std::string rpath, runpath; // DT_RPATH, DT_RUNPATH
};

/// "x86-64": the machine that the engine, and so every plugin, is built for.
std::string_view own_machine();

ElfFile read_elf(const std::filesystem::path& file);

} // namespace triax::plugin
