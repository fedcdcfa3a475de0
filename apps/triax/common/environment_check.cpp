// SPDX-License-Identifier: Apache-2.0
#include "common/environment_check.hpp"

#include <filesystem>
#include <system_error>

#include "os/open_files.hpp"
#include "os/stack_limit.hpp"
#include "triax/error.hpp"

namespace triax::app {

namespace {

constexpr rlim_t kMinOpenFiles = 64;  // one rank with its logs, corpora, plugins and transports
constexpr rlim_t kMinStack = 1 << 20; // bytes; libraries such as UCX have buffers of tens of KiB on it

} // namespace

std::string environment_error() {
  if (const rlim_t allowed = raise_open_files(kMinOpenFiles); allowed < kMinOpenFiles)
    return Error(text("too many open files: this process may open {}, and triax needs {}", allowed, kMinOpenFiles), {},
                 "raise the hard limit of open files (ulimit -Hn)")
        .what();
  if (const rlim_t allowed = os::raise_stack(kMinStack); allowed < kMinStack)
    return Error(text("the stack is too small: this process may have {} KiB, and triax needs {} KiB", allowed / 1024,
                      kMinStack / 1024),
                 {}, "raise the hard limit of the stack (ulimit -Hs)")
        .what();
  std::error_code failed;
  if (std::filesystem::current_path(failed).empty())
    return Error(text("the working folder cannot be found: {}", failed.message()), {},
                 "it was deleted or moved; change to a folder that exists (cd)")
        .what();
  return {};
}

} // namespace triax::app
