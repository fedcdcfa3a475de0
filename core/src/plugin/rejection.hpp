// SPDX-License-Identifier: Apache-2.0
// Libraries that the dynamic linker has rejected in another process: a damaged library that is rejected there can crash
// this process.
//
// Threads: any. Errors: none. Implemented by loader.cpp.
#pragma once

#include <filesystem>

#include "triax/error.hpp"

namespace triax::plugin {

/// From now on, load() throws `error` for this file, without another attempt, unless the file is loaded.
void reject(const std::filesystem::path& file, const Error& error);
bool is_rejected(const std::filesystem::path& file);

} // namespace triax::plugin
