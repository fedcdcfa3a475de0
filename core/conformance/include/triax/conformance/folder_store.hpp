// SPDX-License-Identifier: Apache-2.0
// A Store in a folder, for ranks that are processes of one machine: a key is a file, which an atomic rename sets.
//
// Threads: any, of any process. Ownership: the folder is the caller's. Blocking: get() polls every millisecond; add()
// waits for a lock of the folder. Errors: Error; that of get() at its deadline names the key.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "triax/communicator.hpp"

namespace triax::conformance {

/// A Store in a folder, which several processes share.
class FolderStore final : public Store {
 public:
  explicit FolderStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key, Deadline deadline) override;
  std::int64_t add(std::string_view key, std::int64_t amount) override;
  /// Whether the key is set.
  bool has(std::string_view key) const;

 private:
  std::filesystem::path file(std::string_view key) const;
  void put(const std::filesystem::path& to, std::string_view value) const;

  const std::filesystem::path folder_;
};

} // namespace triax::conformance
