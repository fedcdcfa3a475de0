// SPDX-License-Identifier: Apache-2.0
// The job token: a secret that ranks send to the job server. Connections without it are rejected.
//
// Threads: any. Blocking: from_file() reads a small file. Errors: Error with the file.
//
// The token is passed in the environment of ranks and in their first message, never on a command line and never in a
// log.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace triax::control {

/// The next step for a token of TRIAX_JOB_TOKEN that is longer than JobToken::kMaxBytes; from_file() checks files.
inline constexpr const char* kShortenToken = "use a shorter TRIAX_JOB_TOKEN: openssl rand -hex 32";

class JobToken {
 public:
  static constexpr std::size_t kMaxBytes = 512;

  /// No token: every rank that speaks the protocol is accepted.
  JobToken() = default;
  explicit JobToken(std::string secret) : secret_(std::move(secret)) {}
  /// 32 random bytes from the system, in hexadecimal.
  static JobToken make();
  /// The first line of a file. Only the owner may have access to the file.
  static JobToken from_file(const std::filesystem::path& file);

  bool given() const noexcept { return !secret_.empty(); }
  /// Takes the same time for all tokens of the right length. Without a token, everything matches.
  bool matches(std::string_view shown) const noexcept;
  const std::string& secret() const noexcept { return secret_; }

 private:
  std::string secret_;
};

} // namespace triax::control
