// SPDX-License-Identifier: Apache-2.0
// Checks "libraries" and "symbols" of a library that the dynamic linker refuses: everything that is missing, not only
// the first.
#pragma once

#include <vector>

#include "doctor/diagnosis.hpp"
#include "doctor/dynamic_linker.hpp"
#include "plugin/elf_note.hpp"

namespace triax::doctor {

/// Only faults; empty if no library and no symbol is missing.
std::vector<Check> link_faults(const std::filesystem::path& file, const plugin::ElfFile& elf, const LinkerPaths& paths);

} // namespace triax::doctor
