// SPDX-License-Identifier: Apache-2.0
// JSON files of a model's folder. They are untrusted.
//
// Threads: pure functions. Blocking: reads the file. Errors: Error with the file. Included only by files that use
// nlohmann-json.
#pragma once

#include <cstdint>
#include <filesystem>

#include "checkpoint/strict_json.hpp"

namespace triax::hf {

using Json = checkpoint::Json;

/// An object. Refuses a file of more than `max_bytes`.
Json read_json_file(const std::filesystem::path& path, std::uint64_t max_bytes);

} // namespace triax::hf
