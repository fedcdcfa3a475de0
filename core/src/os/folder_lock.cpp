// SPDX-License-Identifier: Apache-2.0
#include "os/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "os/errno_text.hpp"
#include "triax/error.hpp"

namespace triax::os {

FolderLock::FolderLock(const std::filesystem::path& folder)
    : descriptor_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ >= 0 && flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  const int why = errno;
  if (descriptor_ >= 0) close(descriptor_);
  if (why == EWOULDBLOCK)
    throw Error("another run is writing into this folder", folder.string(),
                "wait until it has ended, or choose another folder with run.dir");
  throw Error(text("the folder cannot be locked: {}", errno_text(why)), folder.string(),
              "choose another folder with run.dir");
}

FolderLock::~FolderLock() {
  close(descriptor_);
}

} // namespace triax::os
