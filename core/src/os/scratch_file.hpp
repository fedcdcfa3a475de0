// SPDX-License-Identifier: Apache-2.0
// A file without a name: it disappears when its process ends, however it ends. Reads and writes at any offset.
//
// Threads: any; calls for different bytes may overlap. Ownership: owns its descriptor. Blocking: reads and writes.
// Errors: Error with the path that the file had, and the offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "os/descriptor.hpp"

namespace triax::os {

class ScratchFile {
 public:
  /// Creates a file of `bytes` zeros, "NAME.XXXXXX" in an existing folder, and removes its name. Throws Error if the
  /// file system has no space for it. `hint`: the next step if it cannot be created or written.
  ScratchFile(const std::filesystem::path& folder, const std::string& name, std::uint64_t bytes, std::string hint);

  const std::filesystem::path& path() const { return path_; }
  void read(std::uint64_t offset, std::span<std::byte> to) const;
  void write(std::uint64_t offset, std::span<const std::byte> from) const;

 private:
  void allocate(std::uint64_t bytes) const;
  [[noreturn]] void fail(const std::string& what, std::uint64_t offset, int error, const std::string& hint) const;

  std::filesystem::path path_; // that it was created with
  std::string hint_;
  Descriptor descriptor_;
};

/// Bytes that this user may still write to the file system of `folder`, or of the nearest folder above it that exists.
/// Throws Error if that cannot be found out.
std::uint64_t free_bytes(const std::filesystem::path& folder);
/// Whether that file system keeps its files in memory.
bool is_in_memory(const std::filesystem::path& folder);

} // namespace triax::os
