// SPDX-License-Identifier: Apache-2.0
// Manual pages in the macros of man(7).
#pragma once

#include <string>

#include "command_table.hpp"
#include "manual_text.hpp"

namespace triax::reference {

struct ManualVersion {
  std::string date, version; // "2026-01-31", "0.1.0"
};

/// The page of the program, which lists its subcommands, or of one subcommand with everything below it.
std::string manual_page(const Command& command, const ManualText& text, const ManualVersion& version);

/// "triax-data": the name of the command's page.
std::string page_name(const std::string& path);

} // namespace triax::reference
