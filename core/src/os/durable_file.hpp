// SPDX-License-Identifier: Apache-2.0
// Files that are on the disk when a call returns, so that a crash of the machine does not lose them.
//
// Threads: any, one per file. Ownership: owns its descriptor. Blocking: writes, and waits for the disk. Errors: Error
// with the path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "os/descriptor.hpp"

namespace triax::os {

/// A new file, complete on the disk after finish(). A large file is written to the disk while more of it arrives, and
/// then takes no memory of the page cache.
class DurableFile {
 public:
  /// Throws Error if there is a file of this name.
  explicit DurableFile(std::filesystem::path file);
  /// Allocates space for the first `bytes` bytes, if the file system can. Throws Error if there is not enough.
  void reserve(std::uint64_t bytes);
  void write(std::span<const std::byte> bytes);
  void finish();

 private:
  void start_writeback();

  const std::filesystem::path file_;
  const Descriptor descriptor_;
  std::uint64_t written_ = 0;
  std::uint64_t started_ = 0; // up to here, the kernel writes to the disk
  std::uint64_t on_disk_ = 0;
};

/// Creates a file with this content.
void write_durable_file(const std::filesystem::path& file, std::string_view content);

/// Waits until the names in the folder are on the disk.
void sync_folder(const std::filesystem::path& folder);

} // namespace triax::os
