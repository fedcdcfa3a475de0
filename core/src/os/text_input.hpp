// SPDX-License-Identifier: Apache-2.0
// Reads a text from a file, a pipe or a device. The size is limited, so that an endless source does not fill the
// memory; the time is limited, so that a pipe without a writer does not block indefinitely.
//
// Threads: any. Blocking: reads; a pipe for up to TextRequest::silence. Errors: Error located at `shown`.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>

namespace triax::os {

/// For error messages: "is larger than 8 MiB, the limit of a TOML text; check that this is the TOML of a run". Without
/// a subject: "the limit of a prompt; check that this is a prompt".
struct TextRequest {
  std::string shown; // the file
  const char* format;
  const char* subject = nullptr;
  std::size_t max_bytes = std::size_t{8} << 20;
  std::chrono::milliseconds silence{60'000}; // without a byte from a pipe
  std::string hint_if_missing = {};
  bool takes_devices = true; // false: a device, which may be endless, is refused
};

std::string read_text(const std::filesystem::path& file, const TextRequest& request);

} // namespace triax::os
