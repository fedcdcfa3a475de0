// SPDX-License-Identifier: Apache-2.0
// The secret that ranks of one job show to its server: who does not know it is a stranger.
//
// Threads: any. Ownership: values. Blocking: from_file() reads a small file. Errors: Error naming the file.
// It travels in the environment of ranks and in their first message: never on a command line, never in a log.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace triax::control {

class JobToken {
 public:
  static constexpr std::size_t kMaxBytes = 512;

  /// None: every rank that speaks the protocol is let in.
  JobToken() = default;
  explicit JobToken(std::string secret) : secret_(std::move(secret)) {}
  /// 32 random bytes of the system, in hexadecimal.
  static JobToken make();
  /// The first line of a file that only its owner can read.
  static JobToken from_file(const std::filesystem::path& file);

  bool given() const noexcept { return !secret_.empty(); }
  /// Takes as long for a wrong token as for the right one of that length. Without a token, everything matches.
  bool matches(std::string_view shown) const noexcept;
  const std::string& secret() const noexcept { return secret_; }

 private:
  std::string secret_;
};

} // namespace triax::control
