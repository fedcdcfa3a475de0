// SPDX-License-Identifier: Apache-2.0
#include "os/append_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "os/errno_text.hpp"
#include "os/file_name.hpp"

namespace triax::os {

namespace {

namespace fs = std::filesystem;

/// The next step for the user, given the error number of a failed write.
std::string next_step(int error) {
  const std::string then = "the run continues, and writes later lines as soon as it can";
  if (error == ENOSPC || error == EDQUOT) return "free space there: " + then;
  if (error == EFBIG) return "raise the limit of a file's size (ulimit -f) before the next run; the run continues";
  return "repair the folder: " + then;
}

bool same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

} // namespace

AppendFile::AppendFile(fs::path file, Observer observer) : path_(std::move(file)), observer_(std::move(observer)) {
  if (open(0)) return;
  const int error = errno;
  throw Error("cannot be opened: " + errno_text(error), path_.string(),
              error == ENXIO ? "it is a FIFO that no process reads: start its reader first, or remove it" : "");
}

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool AppendFile::open(int flags) {
  // Without O_NONBLOCK, a FIFO without a reader would block here.
  const int opened = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | flags, 0666);
  if (opened < 0) return false;
  fcntl(opened, F_SETFL, O_APPEND); // writes wait
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = opened;
  struct stat status {};
  regular_ = fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  whole_.reset();
  end_ = 0;
  return true;
}

bool AppendFile::append(std::string_view line, std::string_view what) {
  buffer_.assign(line).push_back('\n');
  return append_bytes(buffer_, what);
}

bool AppendFile::append_bytes(std::string_view record, std::string_view what) {
  check();
  const int error = write_all(record);
  if (error == 0) {
    ++lines_;
    return true;
  }
  ++lost_lines_;
  if (error != ENOENT) // else check() has reported the deletion
    report(errno_text(error),
           Error(text("{} cannot be written: {}", what, errno_text(error)), path_.string(), next_step(error)), true);
  return false;
}

/// 0, or the error number if nothing of `bytes` is in the file.
int AppendFile::write_all(std::string_view bytes) {
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) return errno;
  if (regular_ && status.st_nlink == 0) return ENOENT;
  if (whole_ && ftruncate(descriptor_, *whole_) != 0) return errno;
  if (whole_) status.st_size = *whole_;
  whole_.reset();
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::write(descriptor_, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int error = count < 0 ? errno : ENOSPC;
      if (regular_ && done > 0 && ftruncate(descriptor_, status.st_size) != 0) whole_ = status.st_size;
      return error;
    }
    done += static_cast<std::size_t>(count);
  }
  end_ = status.st_size + static_cast<off_t>(bytes.size());
  return 0;
}

void AppendFile::check() {
  struct stat opened {
  }, named{};
  if (!regular_ || fstat(descriptor_, &opened) != 0) return;
  if (opened.st_nlink == 0) return on_deleted();
  if (opened.st_size < end_) on_truncated(opened.st_size);
  if (stat(path_.c_str(), &named) != 0 || !same_file(opened, named)) on_moved();
}

void AppendFile::on_deleted() {
  deleted_lines_ += std::exchange(lines_, 0);
  // Must not overwrite a file that another program created.
  const bool again = open(O_EXCL);
  const int error = again ? 0 : errno;
  std::string what = "was deleted during the run";
  if (deleted_lines_ > 0)
    what += deleted_lines_ == 1 ? std::string("; 1 line of this run is lost")
                                : text("; {} lines of this run are lost", deleted_lines_);
  report("deleted",
         Error(what, path_.string(),
               again ? "the run continues, and writes later lines to a new file of this name"
               : error == EEXIST
                   ? "another file has its name now; move that file away: the run continues, and "
                     "then writes later lines to a new file"
                   : "create its folder again: the run continues, and then writes later lines to a new file"),
         true);
}

/// How many lines are gone is not known: at most those of this run.
void AppendFile::on_truncated(off_t size) {
  end_ = size;
  const std::int64_t lines = std::exchange(lines_, 0);
  deleted_lines_ += lines;
  report("truncated",
         Error(text("was truncated during the run; up to {} line{} of this run {} lost", lines, lines == 1 ? "" : "s",
                    lines == 1 ? "is" : "are"),
               path_.string(), "the run continues, and appends later lines to it"),
         true);
}

void AppendFile::on_moved() {
  const fs::path now = name_of_descriptor(descriptor_);
  if (now.empty() || now == path_) {
    report("moved",
           Error("was moved during the run; the run continues, and later lines go to the moved file", path_.string()),
           false);
    return;
  }
  const fs::path before = std::exchange(path_, now);
  report("moved", Error(text("was moved to {} during the run; later lines go there", now), before.string()), false);
}

void AppendFile::report(const std::string& cause, const Error& problem, bool lost) {
  if (std::ranges::find(reported_, cause) != reported_.end()) return;
  reported_.push_back(cause);
  if (observer_) observer_(problem, lost);
}

} // namespace triax::os
