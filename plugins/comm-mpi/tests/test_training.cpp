// SPDX-License-Identifier: Apache-2.0
// Training over comm-mpi has the bits of training over comm-local, with every schedule and on mixtures of both.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "launch/tiny_folder.hpp"
#include "mpi_job.hpp"

namespace triax::comm_mpi::test {
namespace {

using ::testing::SizeIs;

struct Layout {
  const char* name;
  int ranks;
  std::vector<std::string> keys; // key=value
};

constexpr const char* kTables = "[data]\npath = \"text\"\n[schedule]\nplugin = \"sched-gpipe\"\n";

class Training : public ::testing::TestWithParam<Layout> {
 protected:
  Training() { triax::test::fill_tiny_folder(folder_, kTables); }

  std::vector<std::string> arguments(const std::string& dir, const std::vector<std::string>& more) const {
    std::vector<std::string> out = {(triax::test::installation() / "bin/triax").string(), "train", "--set",
                                    "run.dir=" + (folder_ / dir).string()};
    for (const auto* keys : {&GetParam().keys, &more})
      for (const std::string& key : *keys) out.insert(out.end(), {"--set", key});
    out.push_back((folder_ / "run.toml").string());
    return out;
  }

  /// "step loss grad_norm" of each record.
  std::vector<std::string> records(const std::string& dir) const {
    std::vector<std::string> out;
    std::ifstream in(folder_ / dir / "metrics.jsonl");
    for (std::string line; std::getline(in, line);) {
      const auto record = nlohmann::json::parse(line);
      out.push_back(record["step"].dump() + ' ' + record["loss"].dump() + ' ' + record["grad_norm"].dump());
    }
    return out;
  }

  const triax::test::TempFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(
    With, Training,
    ::testing::Values(
        Layout{"GPipe", 4, {"parallel.pipeline=2", "parallel.data=2"}},
        Layout{"OneForwardOneBackward", 4, {"schedule.plugin=sched-1f1b", "parallel.pipeline=2", "parallel.tensor=2"}},
        Layout{"Interleaved",
               2,
               {"schedule.plugin=sched-interleaved", "parallel.pipeline=2", "parallel.chunks=2", "model.layers=4"}},
        Layout{"ZeroBubble", 4, {"schedule.plugin=sched-zb-h1", "parallel.pipeline=2", "parallel.data=2"}},
        Layout{"TensorAndData", 4, {"parallel.tensor=2", "parallel.data=2", "model.dropout=0"}},
        Layout{"ScatteredBoundaries", 4, {"parallel.pipeline=2", "parallel.tensor=2", "parallel.scatter_gather=true"}}),
    [](const auto& each) { return each.param.name; });

TEST_P(Training, HasTheBitsOfThreads) {
  triax::test::Outcome threads;
  std::string line;
  for (const std::string& word : arguments("threads", {"comm.plugin=comm-local"})) line += "'" + word + "' ";
  threads = triax::test::run_command(line + "2>&1");
  ASSERT_EQ(threads.status, 0) << threads.text;
  const MpiEnd end = mpirun(GetParam().ranks, arguments("mpi", {"comm.plugin=comm-mpi"}));
  ASSERT_EQ(end.status, 0) << end.errors;
  EXPECT_THAT(records("threads"), SizeIs(10));
  EXPECT_EQ(records("mpi"), records("threads"));
}

/// Without mpirun, MPI starts each rank alone.
TEST(Launcher, OfTriaxIsRefusedWithWhatToUse) {
  const triax::test::TempFolder folder;
  triax::test::fill_tiny_folder(folder, std::string(kTables) + "[parallel]\ndata = 2\n[comm]\nplugin = \"comm-mpi\"\n");
  const triax::test::Outcome end = triax::test::run(folder.path(), "train run.toml", "2>&1");
  EXPECT_EQ(end.status, 1) << end.text;
  EXPECT_THAT(end.text, ::testing::HasSubstr("MPI has started this process alone, and the run has 2 ranks"));
  EXPECT_THAT(end.text, ::testing::HasSubstr("start the ranks with mpirun"));
}

} // namespace
} // namespace triax::comm_mpi::test
