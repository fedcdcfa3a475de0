// SPDX-License-Identifier: Apache-2.0
// Checks of a library's file, which is not loaded: "file", "ELF note", "toolchain", "core", "exports".
#pragma once

#include "doctor/diagnosis.hpp"
#include "plugin/elf_note.hpp"

namespace triax::doctor {

void check_file(const plugin::ElfFile& elf, Diagnosis& out);

} // namespace triax::doctor
