// SPDX-License-Identifier: Apache-2.0
// Ranks that mpirun starts: all operations and sizes over shared memory and TCP; and ranks that MPI does not know.
#include <gmock/gmock.h>

#include <cstdlib>

#include "mpi_job.hpp"
#include "support/installation.hpp"
#include "triax/text.hpp"

namespace triax::comm_mpi::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string rank_program() {
  return (triax::test::installation() / "bin/comm-mpi-rank").string();
}

class Processes : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!has_mpirun()) GTEST_SKIP() << kNoMpirun;
  }
  MpiEnd run(const std::string& scenario, int ranks) const {
    const triax::test::TempFolder folder;
    return mpirun(ranks, {rank_program(), scenario, folder.path().string()}, {"--mca", "btl", GetParam()});
  }
};
INSTANTIATE_TEST_SUITE_P(Over, Processes, ::testing::Values("vader,self", "tcp,self"), [](const auto& each) {
  return std::string(each.param).substr(0, 3) == "tcp" ? "tcp" : "memory";
});

TEST_P(Processes, ReduceAndExchangeAllSizes) {
  for (const int ranks : {2, 3, 4}) {
    const MpiEnd end = run("everything", ranks);
    EXPECT_EQ(end.status, 0) << ranks;
    EXPECT_THAT(end.errors, IsEmpty()) << ranks;
  }
}

TEST_P(Processes, DeliverMessagesAfterTheSenderHasLeft) {
  const MpiEnd end = run("leaves-after-sending", 2);
  EXPECT_EQ(end.status, 0);
  EXPECT_THAT(end.errors, IsEmpty());
}

/// MPI is not finalized after an abort, which mpirun reports too.
TEST_P(Processes, ReportATransferOfAnotherType) {
  const MpiEnd end = run("other-type", 2);
  EXPECT_NE(end.status, 0);
  EXPECT_THAT(end.errors, HasSubstr("group world, channel 4: rank 0 sends 6 f32 where rank 1 receives 6 i32"));
}

/// MPI reads the buffers of all transports in every call, so none may call it when buffers of one may be freed.
TEST_P(Processes, DoNotCallMpiAfterAnotherBackendHasRetired) {
  const MpiEnd end = run("two-backends", 2);
  EXPECT_NE(end.status, 0);
  EXPECT_THAT(end.errors, HasSubstr("MPI is not used any more in this process, because another group was aborted"));
}

/// Tags of later calls would be those of earlier ones.
TEST_P(Processes, RefuseMoreCallsThanTagsDistinguish) {
  const MpiEnd end = run("too-many", 2);
  EXPECT_NE(end.status, 0);
  EXPECT_THAT(end.errors,
              HasSubstr("group world: 8192 calls of rank 0 are in flight, the most that tags of comm-mpi can "
                        "distinguish\n  wait for earlier calls before more are posted\n"));
}

TEST_P(Processes, CarryMessagesThatAnIntDoesNotCount) {
  if (!std::getenv("TRIAX_LARGE_MESSAGES")) GTEST_SKIP() << "needs 5 GiB of memory: set TRIAX_LARGE_MESSAGES";
  const MpiEnd end = run("above-2-gib", 2);
  EXPECT_EQ(end.status, 0);
  EXPECT_THAT(end.errors, IsEmpty());
}

/// Processes that neither mpirun nor Triax's launcher has started know only themselves.
TEST(Singletons, AreRefused) {
  const triax::test::TempFolder folder;
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"})
    ::setenv(variable, std::string(variable).ends_with("RANK") ? "0" : "2", 1);
  int status = 0;
  {
    control::test::Child child({rank_program(), "everything", folder.path().string()}, folder / "errors");
    status = child.wait();
  }
  ::unsetenv("OMPI_COMM_WORLD_RANK");
  ::unsetenv("OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_THAT(triax::test::read_file(folder / "errors"),
              HasSubstr("comm-mpi: MPI started 1 process, but the run has 2 ranks\n"));
}

} // namespace
} // namespace triax::comm_mpi::test
