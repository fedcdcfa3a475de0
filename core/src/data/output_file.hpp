// A file being written, buffered; and a whole one, written beside its place and put there when it is on the disk.
//
// Threads: one. Ownership: owns its descriptor, not its name. Blocking: writes. Errors: Error naming the file and the
// system's reason, from the call that meets it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

namespace triax::data {

class OutputFile {
 public:
  enum class Lasting { named, anonymous }; // an anonymous file is gone when it is closed, however the process ends

  OutputFile(std::filesystem::path file, Lasting lasting);
  ~OutputFile();
  void write(const void* data, std::size_t bytes);
  void write_at(std::uint64_t offset, const void* data, std::size_t bytes);
  /// Reads back what was written.
  void read_at(std::uint64_t offset, void* data, std::size_t bytes);
  std::uint64_t bytes() const { return bytes_; }
  /// Everything on the disk; nothing may be written afterwards.
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

/// Makes the file, or replaces it: whoever opens it finds what was there before, or all of `bytes`. A link stays, and
/// what it names is replaced; permissions stay. What fails leaves what was there, and nothing beside it.
void replace_file(const std::filesystem::path& file, std::string_view bytes);

} // namespace triax::data
