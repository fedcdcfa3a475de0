// SPDX-License-Identifier: Apache-2.0
// A file with random access. It uses read calls, not a mapping: if another process truncates the file, this causes an
// Error, whereas access to a mapping past the new end would kill the process.
//
// Threads: any, after construction. Ownership: owns its descriptor. Blocking: reads. Errors: Error with the file and
// the bytes. Reading does not allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace triax::os {

class InputFile {
 public:
  /// Opens a regular file. `hint`: what the user can do if the file does not exist.
  explicit InputFile(const std::filesystem::path& file, const std::string& hint = {});
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  /// Size when the file was opened.
  std::uint64_t bytes() const { return bytes_; }
  /// Fills `out` with the bytes from `offset` on. Throws Error if the file ends before that.
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;
  /// Returns the number of bytes read; it is 0 only at the end of the file.
  std::size_t read_some(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::filesystem::path file_;
  int descriptor_;
  std::uint64_t bytes_ = 0;
};

/// Why `file` cannot be read as a regular file: "does not exist", "is a folder, not a regular file"... Empty if nothing
/// is known against it. Does not open it, and so does not block on a FIFO.
std::string why_not_a_file(const std::filesystem::path& file);

/// The next step if this user has no permission to read `file`; else empty.
std::string permission_hint(const std::filesystem::path& file);

} // namespace triax::os
