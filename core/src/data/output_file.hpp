// SPDX-License-Identifier: Apache-2.0
// A buffered output file, and atomic replacement of a whole file.
//
// Ownership: owns its descriptor. Blocking: writes. Errors: Error with the file and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

namespace triax::data {

class OutputFile {
 public:
  enum class Lasting { named, anonymous }; // an anonymous file is removed even if the process is killed

  OutputFile(std::filesystem::path file, Lasting lasting);
  ~OutputFile();
  void write(const void* data, std::size_t bytes);
  void write_at(std::uint64_t offset, const void* data, std::size_t bytes);
  /// Reads back bytes that were written.
  void read_at(std::uint64_t offset, void* data, std::size_t bytes);
  std::uint64_t bytes() const { return bytes_; }
  /// Writes all data to disk. Nothing may be written afterwards.
  void close();

 private:
  void flush();
  [[noreturn]] void fail(const char* what) const;

  static constexpr std::size_t kBuffer = 1 << 18;
  std::filesystem::path file_;
  int descriptor_ = -1;
  std::unique_ptr<char[]> buffer_;
  std::size_t held_ = 0;
  std::uint64_t bytes_ = 0;
};

/// Creates the file or replaces it atomically: other processes see the previous contents or all of `bytes`. Follows a
/// symbolic link and replaces its target; keeps permissions. On failure, the previous file stays and no other file is
/// left.
void replace_file(const std::filesystem::path& file, std::string_view bytes);

} // namespace triax::data
