// SPDX-License-Identifier: Apache-2.0
// What a plugin's file tells without being loaded: whether it is a shared library for this machine, the ELF note that
// TRIAX_PLUGIN leaves in it, and the libraries it wants. Read first, because a library of another sanitizer kills the
// process inside dlopen, and because the note can say why a library does not load.
//
// Threads: any. Ownership: values. Blocking: reads the file. Errors: Error if the file is no library for this machine.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace triax::plugin {

/// "triax=0.1.0;abi=1.0;libstdc++-cxx11abi1;sanitizer=none;c++20;release=12", taken apart.
struct Note {
  std::string text; // empty: the file has no note, as a plugin in C may not
  std::string triax;
  std::string abi;
  std::string toolchain;
};

Note parse_note(std::string_view text);

struct ElfFile {
  Note note;
  std::vector<std::string> needed; // DT_NEEDED: "libtriax_core.so.0.1", ...
};

ElfFile read_elf(const std::filesystem::path& file);

} // namespace triax::plugin
