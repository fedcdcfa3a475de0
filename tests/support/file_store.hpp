// SPDX-License-Identifier: Apache-2.0
// A store in a folder, for tests whose ranks are processes: a key is a file, which an atomic rename sets.
//
// Threads: any, of any process. Blocking: get() polls every millisecond. Errors: get() throws Error at its deadline.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>

#include "support/temp_folder.hpp"
#include "triax/communicator.hpp"
#include "triax/error.hpp"

namespace triax::test {

class FileStore final : public Store {
 public:
  explicit FileStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void set(std::string_view key, std::string_view value) override { put(file(key), value); }

  std::string get(std::string_view key, Deadline deadline) override {
    while (!std::filesystem::exists(file(key))) {
      if (Clock::now() >= deadline) throw Error(text("the key \"{}\" was not set before the deadline", key), "store");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return test::read_file(file(key));
  }

  std::int64_t add(std::string_view key, std::int64_t amount) override {
    const std::filesystem::path counter = file(key) + ".count";
    const int lock = ::open((folder_ / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    TRIAX_REQUIRE(lock >= 0 && ::flock(lock, LOCK_EX) == 0, "no lock in {}", folder_.string());
    if (std::filesystem::exists(counter)) amount += std::stoll(test::read_file(counter));
    put(counter, std::to_string(amount));
    ::close(lock); // also unlocks
    return amount;
  }

 private:
  std::string file(std::string_view key) const {
    std::string name(key);
    for (char& letter : name)
      if (letter == '/' || letter == ' ') letter = '_';
    return (folder_ / name).string();
  }
  void put(const std::filesystem::path& to, std::string_view value) const {
    const std::filesystem::path whole = to.string() + text(".{}.new", ::getpid());
    test::write_file(whole, value);
    std::filesystem::rename(whole, to);
  }

  std::filesystem::path folder_;
};

} // namespace triax::test
