// A whole file in memory, read-only.
//
// Threads: read-only after opening; any thread. Ownership: owns the mapping. Blocking: page faults. Errors: Error
// naming the file. A file must not be cut while it is mapped: reading past its new end ends the process.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace triax::data {

class MappedFile {
 public:
  /// `hint`: the next step for whoever has no such file.
  MappedFile(const std::filesystem::path& file, const std::string& hint);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_; // empty: an empty file, which cannot be mapped
};

} // namespace triax::data
