// SPDX-License-Identifier: Apache-2.0
#include "common/environment_check.hpp"

#include <filesystem>
#include <system_error>

#include "os/open_files.hpp"
#include "os/stack_limit.hpp"

namespace triax::app {

namespace {

constexpr rlim_t kMinOpenFiles = 64;  // one rank with its logs, corpora, plugins and transports
constexpr rlim_t kMinStack = 1 << 20; // bytes; libraries such as UCX have buffers of tens of KiB on it

} // namespace

std::optional<Refusal> environment_error() {
  if (const rlim_t allowed = os::raise_open_file_limit(kMinOpenFiles); allowed < kMinOpenFiles)
    return make_refusal(ErrorCode::kConflict, {}, "the limit on open files is {}, but triax needs at least {}", allowed,
                        kMinOpenFiles)
        .with_hint("ask the administrator to raise the hard limit (ulimit -Hn) to at least {}", kMinOpenFiles);
  if (const rlim_t allowed = os::raise_stack_limit(kMinStack); allowed < kMinStack)
    return make_refusal(ErrorCode::kConflict, {},
                        "the limit on the stack size is {} KiB, but triax needs at least {} KiB", allowed / 1024,
                        kMinStack / 1024)
        .with_hint("ask the administrator to raise the hard limit (ulimit -Hs) to at least {}", kMinStack / 1024);
  std::error_code failed;
  if (std::filesystem::current_path(failed).empty())
    return make_refusal(ErrorCode::kNotFound, {}, "the working folder cannot be found: {}", failed.message())
        .with_hint("it was deleted or moved; change to a folder that exists (cd)");
  return std::nullopt;
}

} // namespace triax::app
