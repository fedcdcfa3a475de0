// SPDX-License-Identifier: Apache-2.0
// The template of a communicator, with ranks as processes: one that is killed is named by the other, in a call that
// waits and in later ones.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/communicator_suite.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"
#include "triax/conformance/folder_store.hpp"

namespace triax::test {
namespace {

using ::testing::HasSubstr;

class Member {
 public:
  Member(int index, const std::filesystem::path& folder) : store_(folder), rank_(index, layout_, store_, under_test()) {
    rank_.wait(reduce());
  }
  Work reduce() { return comm_.all_reduce(view_, view_, Reduce::sum, rank_.stream(), 7); }
  Rank& rank() { return rank_; }
  Communicator& comm() { return comm_; }
  const TensorView& view() const { return view_; }

 private:
  const Layout layout_ = Layout::ptd(1, 2, 1);
  conformance::FolderStore store_;
  Rank rank_;
  Communicator& comm_ = rank_.join("tensor");
  const TensorView view_ = rank_.tensor(DType::f32, {1 << 16});
};

/// Never returns: it is killed.
[[noreturn]] void wait_to_be_killed(const std::filesystem::path& folder) {
  try {
    Member member(1, folder);
    conformance::FolderStore(folder).set("reduced", "");
    while (true) ::pause();
  } catch (const std::exception& error) {
    ::_exit(1);
  }
}

TEST(LostPeers, AKilledProcessIsNamed) {
  const TempFolder folder;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) wait_to_be_killed(folder.path());
  Member member(0, folder.path());
  const Work pending = member.reduce();
  member.rank().store().get("reduced", Rank::deadline());
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  const auto reason =
      HasSubstr("group tensor.0: rank 1 is lost to rank 0: it has closed its connection: its process has ended");
  EXPECT_THAT(error_of([&] { member.rank().wait(pending); }), reason);
  EXPECT_THAT(error_of([&] { member.rank().wait(member.comm().broadcast(member.view(), 1, member.rank().stream())); }),
              reason);
  EXPECT_THAT(error_of([&] { member.comm().barrier(Rank::deadline()); }), reason);
}

} // namespace
} // namespace triax::test
