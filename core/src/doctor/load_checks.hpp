// SPDX-License-Identifier: Apache-2.0
// Checks of a library that is loaded, in child processes: "load", "libraries", "symbols", those of its descriptor, and
// "object". A crash, an exit or a hang ends the child only.
#pragma once

#include "doctor/diagnosis.hpp"
#include "plugin/elf_note.hpp"
#include "plugin/plugin_call.hpp"

namespace triax::doctor {

/// To be called after check_file(): reads the outcomes of its checks.
void check_loading(const plugin::ElfFile& elf, const plugin::CallLimits& limits, Diagnosis& out);

} // namespace triax::doctor
