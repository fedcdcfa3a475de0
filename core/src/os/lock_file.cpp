// SPDX-License-Identifier: Apache-2.0
#include "os/lock_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "os/errno_text.hpp"
#include "os/file_name.hpp"

namespace triax::os {

namespace {

/// False if `file` was deleted or moved after this process opened it; the lock then does not protect this name.
bool is_still(int descriptor, const std::filesystem::path& file) {
  struct stat opened {
  }, named{};
  return ::fstat(descriptor, &opened) == 0 && ::stat(file.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

} // namespace

LockFile::LockFile(std::filesystem::path file, const Error& held, const LockFileHints& hints) : file_(std::move(file)) {
  for (;;) {
    descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor_ < 0) throw Error(text("cannot be created: {}", errno_text()), file_.string(), hints.not_created);
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      ::close(descriptor_);
      if (error == EWOULDBLOCK) throw Error(held);
      throw Error(text("cannot be locked: {}", errno_text(error)), file_.string(), hints.not_locked);
    }
    if (is_still(descriptor_, file_)) return;
    ::close(descriptor_);
  }
}

LockFile::~LockFile() {
  remove_file(); // before the lock ends: a process that has opened this file opens it again
  ::close(descriptor_);
}

void LockFile::remove_file() const {
  // The folder may have been moved, and the old name may be the lock file of another process by now.
  const std::filesystem::path name = is_still(descriptor_, file_) ? file_ : name_of_descriptor(descriptor_);
  if (is_still(descriptor_, name)) ::unlink(name.c_str());
}

} // namespace triax::os
