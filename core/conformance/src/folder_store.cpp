// SPDX-License-Identifier: Apache-2.0
#include "triax/conformance/folder_store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>
#include <utility>

#include "os/descriptor.hpp"
#include "os/errno_text.hpp"
#include "os/write_all.hpp"
#include "triax/error.hpp"
#include "triax/wait_deadline.hpp"

namespace triax::conformance {

namespace {

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw Error("cannot be read", file.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace

void FolderStore::set(std::string_view key, std::string_view value) {
  put(file(key), value);
}

bool FolderStore::has(std::string_view key) const {
  std::error_code unreadable;
  return std::filesystem::exists(file(key), unreadable);
}

std::string FolderStore::get(std::string_view key, Deadline deadline) {
  for (WaitDeadline until(deadline); !has(key); std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    if (until.passed())
      throw Error(text("timed out waiting for key \"{}\"", key), "store", "the rank that sets it may be slow or lost");
  return content_of(file(key));
}

std::int64_t FolderStore::add(std::string_view key, std::int64_t amount) {
  const std::filesystem::path counter = file(text("{} (counter)", key));
  const os::Descriptor lock(::open((folder_ / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  TRIAX_REQUIRE(lock && ::flock(lock.number(), LOCK_EX) == 0, "cannot lock {}: {}", folder_, errno_text());
  if (std::filesystem::exists(counter)) amount += std::stoll(content_of(counter));
  put(counter, std::to_string(amount));
  return amount; // closing the lock unlocks it
}

/// Keys may have any character, and differ in any.
std::filesystem::path FolderStore::file(std::string_view key) const {
  std::string name = "key ";
  for (const char letter : key) {
    const bool is_plain = letter != '/' && letter != '%' && letter != '\0';
    name += is_plain ? std::string(1, letter) : text("%{}.", static_cast<int>(letter));
  }
  return folder_ / name;
}

/// Written beside the file, under a name of this thread: other threads and processes may set the same key.
void FolderStore::put(const std::filesystem::path& to, std::string_view value) const {
  const std::filesystem::path whole = to.string() + text(".{}.new", ::gettid());
  {
    const os::Descriptor out(::open(whole.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    const int error = out ? write_all(out.number(), value) : errno;
    if (error != 0) throw Error(text("cannot be written: {}", errno_text(error)), whole.string());
  }
  std::filesystem::rename(whole, to);
}

} // namespace triax::conformance
