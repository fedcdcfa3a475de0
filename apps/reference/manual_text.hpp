// SPDX-License-Identifier: Apache-2.0
// The descriptions and examples of manual pages.
#pragma once

#include <vector>

namespace triax::reference {

struct Example {
  const char *doc, *command;
};

struct ManualText {
  const char* path;                    // of the command: "triax data"
  std::vector<const char*> paragraphs; // after the command's own line
  std::vector<Example> examples;
};

/// One per page, in the order of the pages.
const std::vector<ManualText>& manual_texts();

/// In the macros of man(7).
const char* exit_status_section();
const char* environment_section();

} // namespace triax::reference
