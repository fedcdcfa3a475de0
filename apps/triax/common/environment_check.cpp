// SPDX-License-Identifier: Apache-2.0
#include "common/environment_check.hpp"

#include <filesystem>
#include <system_error>

#include "os/open_files.hpp"
#include "triax/error.hpp"

namespace triax::app {

namespace {

constexpr rlim_t kMinOpenFiles = 64; // one rank with its logs, corpora, plugins and transports

} // namespace

std::string environment_error() {
  if (const rlim_t allowed = raise_open_files(kMinOpenFiles); allowed < kMinOpenFiles)
    return Error(text("too many open files: this process may open {}, and triax needs {}", allowed, kMinOpenFiles), {},
                 "raise the hard limit of open files (ulimit -Hn)")
        .what();
  std::error_code failed;
  if (std::filesystem::current_path(failed).empty())
    return Error(text("the working folder cannot be found: {}", failed.message()), {},
                 "it was deleted or moved; change to a folder that exists (cd)")
        .what();
  return {};
}

} // namespace triax::app
