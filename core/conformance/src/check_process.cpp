// SPDX-License-Identifier: Apache-2.0
#include "check_process.hpp"

#include <sys/mman.h>

#include <filesystem>
#include <new>
#include <system_error>

#include "os/errno_text.hpp"
#include "os/library_of.hpp"

namespace triax::conformance {

namespace {

constexpr char kAnswered = 'A', kEnd = '\0'; // an answer is never empty, and its texts have no zero byte

} // namespace

std::shared_ptr<Activities> make_shared_activities() {
  void* const memory = mmap(nullptr, sizeof(Activities), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw Error(text("cannot map memory for a check: {}", errno_text()));
  return {new (memory) Activities, [](Activities* shared) {
            std::error_code ignored;
            if (*shared->store_folder) std::filesystem::remove_all(shared->store_folder, ignored);
            munmap(shared, sizeof(Activities));
          }};
}

std::string calls_text(const Activities& activities, int rank) {
  std::string out;
  const auto add = [&out](const RankActivity& of, const std::string& who) {
    const RankActivity::Call call = of.call();
    if (!call.what) return;
    bool is_found = false; // the pointer is that of another process; names in libraries loaded before its fork are here
    library_file_at(call.what, is_found);
    if (is_found) out += text("{}{}in {}()", out.empty() ? "" : ", ", who, call.what);
  };
  if (rank < 0) add(activities.of_check, "");
  for (int i = 0; i < kMaxRanks; ++i)
    if (rank < 0 || rank == i) add(activities.of_rank[i], text("rank {} ", i));
  return out;
}

std::string to_answer(const std::vector<std::string>& texts) {
  std::string out(1, kAnswered);
  for (const std::string& one : texts) {
    for (const char letter : one) out += letter == kEnd ? '?' : letter;
    out += kEnd;
  }
  return out;
}

std::vector<std::string> from_answer(const std::string& answer) {
  std::vector<std::string> out;
  for (std::size_t begin = 1, end = 0; (end = answer.find(kEnd, begin)) != std::string::npos; begin = end + 1)
    out.push_back(answer.substr(begin, end - begin));
  return out;
}

} // namespace triax::conformance
