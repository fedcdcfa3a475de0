// A file that is read at any place. It is read by calls, not mapped: what another process does to a file in use becomes
// an Error, where touching a mapping past the file's new end would end the process.
//
// Threads: any, after opening. Ownership: owns its descriptor. Blocking: reads. Errors: Error naming the file and the
// bytes. Reading does not allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace triax::data {

class InputFile {
 public:
  /// `hint`: the next step for whoever has no such file. Only regular files are opened.
  explicit InputFile(const std::filesystem::path& file, const std::string& hint = {});
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  /// When it was opened.
  std::uint64_t bytes() const { return bytes_; }
  /// Fills `out` with what stands from `offset` on; throws Error where the file ends before that.
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;
  /// The number of bytes read, which is 0 only at the end of the file.
  std::size_t read_some(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::filesystem::path file_;
  int descriptor_;
  std::uint64_t bytes_ = 0;
};

} // namespace triax::data
