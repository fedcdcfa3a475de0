// SPDX-License-Identifier: Apache-2.0
#include "os/temporary_folder.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <system_error>

#include "os/errno_text.hpp"
#include "triax/error.hpp"

namespace triax::os {

namespace {

namespace fs = std::filesystem;

/// The folder that fs::temp_directory_path() cannot use: it takes the first of these.
std::string named_folder() {
  for (const char* variable : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"})
    if (const char* const folder = std::getenv(variable)) return folder;
  return "/tmp";
}

/// Waits until no process has the other end of the pipe. Signals of a terminal must not reach it, and nothing may wait
/// for its output.
[[noreturn]] void remove_at_end(const fs::path& folder, int alive) {
  ::setsid();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_IGN);
  ::dup2(alive, STDIN_FILENO);
  ::close_range(STDOUT_FILENO, ~0U, 0);
  char none = 0;
  while (::read(STDIN_FILENO, &none, 1) < 0 && errno == EINTR) {
  }
  std::error_code unremovable;
  fs::remove_all(folder, unremovable);
  ::_exit(0);
}

[[noreturn]] void fail_to_make(const fs::path& folder, const char* what, int error) {
  std::error_code none;
  fs::remove(folder, none);
  throw Error(text("cannot start a process that removes it: {}: {}", what, errno_text(error)), folder.string(),
              "allow this user more processes (ulimit -u) or open files (ulimit -n)");
}

} // namespace

TemporaryFolder::TemporaryFolder(const std::string& prefix) : owner_(::getpid()) {
  std::error_code none;
  const fs::path base = fs::temp_directory_path(none);
  std::string name = (base / (prefix + "XXXXXX")).string();
  if (none || !::mkdtemp(name.data()))
    throw Error(text("cannot create a temporary folder: {}", none ? none.message() : errno_text(errno)),
                none ? named_folder() : base.string(), "set TMPDIR to a folder that this user can write");
  path_ = name;
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) fail_to_make(path_, "pipe", errno);
  std::cout.flush(); // else both would write it
  remover_ = ::fork();
  const int error = errno;
  if (remover_ == 0) {
    ::close(ends[1]);
    remove_at_end(path_, ends[0]);
  }
  ::close(ends[0]);
  alive_ = ends[1];
  if (remover_ > 0) return;
  ::close(alive_);
  fail_to_make(path_, "fork", error);
}

/// A copy of this process (fork) leaves the folder to the owner.
TemporaryFolder::~TemporaryFolder() {
  ::close(alive_);
  if (::getpid() != owner_) return;
  std::error_code unremovable;
  fs::remove_all(path_, unremovable);
  while (::waitpid(remover_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

} // namespace triax::os
