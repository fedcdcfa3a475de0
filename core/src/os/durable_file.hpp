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
#include <string>
#include <string_view>

#include "os/descriptor.hpp"

namespace triax::os {

/// How errors name a file that cannot be written, and the next step.
struct WriteErrorText {
  std::filesystem::path file; // that the user named; empty: the file itself
  std::string hint = "free space there, or choose another folder with run.dir";
};

/// A new file, complete on the disk after finish(). A large file is written to the disk while more of it arrives, and
/// then takes no memory of the page cache.
class DurableFile {
 public:
  /// Throws Error if there is a file of this name.
  explicit DurableFile(std::filesystem::path file, WriteErrorText errors = {});
  /// Allocates space for the first `bytes` bytes, if the file system can. Throws Error if there is not enough.
  void reserve(std::uint64_t bytes);
  void write(std::span<const std::byte> bytes);
  void finish();

 private:
  [[noreturn]] void fail(int error) const;
  void start_writeback();

  const std::filesystem::path file_;
  const WriteErrorText errors_;
  const Descriptor descriptor_;
  std::uint64_t written_ = 0;
  std::uint64_t started_ = 0; // up to here, the kernel writes to the disk
  std::uint64_t on_disk_ = 0;
};

/// A new file that has a hidden name beside its own until it is complete. The destructor removes it unless commit() has
/// returned.
class StagedFile {
 public:
  StagedFile(const std::filesystem::path& file, std::string hint);
  ~StagedFile();
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  void write(std::span<const std::byte> bytes) { out_.write(bytes); }
  /// Waits for the disk, then gives the file its name. `replace`: a file of that name; else that is an Error.
  void commit(bool replace);
  bool is_committed() const { return committed_; }

 private:
  const std::filesystem::path file_, hidden_;
  const std::string hint_;
  DurableFile out_;
  const Descriptor lock_;
  bool committed_ = false;
};

/// Creates a file with this content.
void write_durable_file(const std::filesystem::path& file, std::string_view content);

/// Waits until the names in the folder are on the disk.
void sync_folder(const std::filesystem::path& folder);

/// A hidden name in the same folder, for what is not complete: "a/.x.partial-4711" for "a/x". Differs from process to
/// process, and from what killed processes have left.
std::filesystem::path partial_name(const std::filesystem::path& path);
/// The reason why `path` cannot have a partial name, which is longer than its own; empty if it can.
std::string why_name_too_long(const std::filesystem::path& path);
/// Locks a file or folder with a partial name while its process lives, and this object.
Descriptor lock_partial(const std::filesystem::path& partial) noexcept;
/// Removes what killed processes have left under partial names of `path`: own files that have no lock.
void remove_abandoned(const std::filesystem::path& path) noexcept;
/// Renames a file or a folder, and waits until the name is on the disk. Throws Error if `to` exists.
void rename_to_new(const std::filesystem::path& from, const std::filesystem::path& to, const std::string& hint);

} // namespace triax::os
