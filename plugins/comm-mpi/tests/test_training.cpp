// SPDX-License-Identifier: Apache-2.0
// Training over comm-mpi has the bits of training over comm-local, with every schedule, whether mpirun or Triax's own
// launcher has started the ranks; and a rank of the launcher that is killed ends the run.
#include <gmock/gmock.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "launch/tiny_folder.hpp"
#include "launch/train_process.hpp"
#include "mpi_job.hpp"
#include "support/sanitizers.hpp"

namespace triax::comm_mpi::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::SizeIs;

struct Layout {
  const char* name;
  int ranks;
  std::vector<std::string> keys;     // key=value
  std::vector<std::string> mpi_keys; // of comm-mpi only
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

  triax::test::Outcome train(const std::string& dir, const std::vector<std::string>& more) const {
    std::string line;
    for (const std::string& word : arguments(dir, more)) line += "'" + word + "' ";
    return triax::test::run_command(line + "2>&1");
  }

  std::vector<std::string> of_mpi() const {
    std::vector<std::string> out = {"comm.plugin=comm-mpi"};
    out.insert(out.end(), GetParam().mpi_keys.begin(), GetParam().mpi_keys.end());
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

std::vector<Layout> layouts() {
  std::vector<Layout> out = {
      Layout{"GPipe", 4, {"parallel.pipeline=2", "parallel.data=2"}, {}},
      Layout{
          "OneForwardOneBackward", 4, {"schedule.plugin=sched-1f1b", "parallel.pipeline=2", "parallel.tensor=2"}, {}},
      Layout{"Interleaved",
             2,
             {"schedule.plugin=sched-interleaved", "parallel.pipeline=2", "parallel.chunks=2", "model.layers=4"},
             {}},
      Layout{"BreadthFirst",
             2,
             {"schedule.plugin=sched-breadth-first", "parallel.pipeline=2", "parallel.chunks=2", "model.layers=4"},
             {}},
      Layout{"ZeroBubbleH1", 4, {"schedule.plugin=sched-zb-h1", "parallel.pipeline=2", "parallel.data=2"}, {}},
      Layout{"ZeroBubbleH2", 2, {"schedule.plugin=sched-zb-h2", "parallel.pipeline=2"}, {}},
      Layout{"ZeroBubbleV",
             2,
             {"schedule.plugin=sched-zb-v", "parallel.pipeline=2", "parallel.chunks=2", "model.layers=4"},
             {}},
      Layout{"TensorAndData", 4, {"parallel.tensor=2", "parallel.data=2", "model.dropout=0"}, {}},
      Layout{"TwoTables",
             4,
             {"parallel.tensor=2", "parallel.data=2"},
             {"comm.tensor.plugin=comm-mpi", "comm.tensor.wait=spin"}},
      Layout{
          "ScatteredBoundaries", 4, {"parallel.pipeline=2", "parallel.tensor=2", "parallel.scatter_gather=true"}, {}}};
  if (triax::test::kSanitized)
    std::erase_if(out, [](const Layout& of) { return std::string_view(of.name).starts_with("ZeroBubble"); });
  return out;
}

INSTANTIATE_TEST_SUITE_P(With, Training, ::testing::ValuesIn(layouts()),
                         [](const auto& each) { return each.param.name; });

TEST_P(Training, HasTheBitsOfThreads) {
  const triax::test::Outcome threads = train("threads", {"comm.plugin=comm-local"});
  ASSERT_EQ(threads.status, 0) << threads.text;
  EXPECT_THAT(records("threads"), SizeIs(10));

  const triax::test::Outcome alone = train("alone", of_mpi());
  ASSERT_EQ(alone.status, 0) << alone.text;
  EXPECT_EQ(records("alone"), records("threads"));

  if (!has_mpirun()) GTEST_SKIP() << kNoMpirun;
  const MpiEnd end = mpirun(GetParam().ranks, arguments("mpirun", of_mpi()));
  ASSERT_EQ(end.status, 0) << end.errors;
  EXPECT_EQ(records("mpirun"), records("threads"));
}

/// MPI reports no lost peer: the launcher sees the end of the process.
TEST(Launcher, NamesAKilledRankAndEndsTheOthers) {
  const triax::test::TempFolder folder;
  triax::test::fill_tiny_folder(folder, std::string(kTables) +
                                            "[parallel]\ntensor = 2\ndata = 2\n[comm]\nplugin = \"comm-mpi\"\n"
                                            "[comm.tensor]\nplugin = \"comm-mpi\"\n");
  triax::test::TrainProcess job(folder.path(), "triax", {"train", "run.toml", "--set", "train.steps=1000000"});
  const auto has_stepped = [&] {
    std::error_code none;
    return std::filesystem::file_size(folder / "run/metrics.jsonl", none) > 0 && !none;
  };
  while (!has_stepped() && !job.ended()) ::usleep(5000);
  const std::vector<pid_t> ranks = job.ranks();
  ASSERT_THAT(ranks, SizeIs(4)) << job.err();
  const auto began = std::chrono::steady_clock::now();
  triax::test::send_signal(ranks[1], SIGKILL);
  EXPECT_EQ(job.wait(), 1);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
  for (const pid_t rank : ranks) EXPECT_FALSE(triax::test::alive(rank));
  EXPECT_THAT(job.err(), HasSubstr(" error launcher: rank 1 (pipeline 0, data 0, tensor 1; "));
  EXPECT_THAT(job.err(), ContainsRegex("\\) was lost [^\n]*: killed by signal 9 \\(Killed\\)\n"));
}

/// Open MPI prints nothing itself: it sends its explanation to the PMIx server.
TEST(Launcher, LogsWhatMpiReports) {
  const triax::test::TempFolder folder;
  triax::test::fill_tiny_folder(folder, std::string(kTables) + "[parallel]\ndata = 2\n[comm]\nplugin = \"comm-mpi\"\n");
  const triax::test::Outcome out =
      triax::test::run_command("cd '" + folder.path().string() + "' && OMPI_MCA_btl=nosuch '" +
                               (triax::test::installation() / "bin/triax").string() + "' train run.toml 2>&1");
  EXPECT_EQ(out.status, 1);
  EXPECT_THAT(out.text, ContainsRegex(" warning launcher: MPI, rank [01]: .*nosuch"));
}

/// Files in /dev/shm that a process has mapped as Open MPI's shared memory.
std::vector<std::string> shared_files_of(pid_t process) {
  std::vector<std::string> out;
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  for (std::string line; std::getline(maps, line);)
    if (const std::size_t at = line.find("/dev/shm/"); line.find("vader_segment.") != std::string::npos)
      out.push_back(line.substr(at));
  return out;
}

std::filesystem::path fill_folder(const triax::test::TempFolder& folder) {
  triax::test::fill_tiny_folder(folder, std::string(kTables) + "[comm]\nplugin = \"comm-mpi\"\n");
  return folder.path();
}

std::vector<std::string> await_shared_files(triax::test::TrainProcess& job) {
  std::vector<std::string> files;
  while (files.empty() && !job.ended()) {
    ::usleep(20'000);
    for (const pid_t rank : job.ranks())
      for (const std::string& file : shared_files_of(rank)) files.push_back(file);
  }
  return files;
}

/// Ranks that are killed because there is no step to stop after cannot remove their files.
TEST(Launcher, RemovesTheSharedMemoryOfRanksThatItKills) {
  const triax::test::TempFolder folder;
  triax::test::TrainProcess job(fill_folder(folder), "triax",
                                {"train", "run.toml", "--set", "parallel.pipeline=2", "--set",
                                 "kernels.plugin=kernels-sim", "--set", "kernels.op_us=1e8"});
  const std::vector<std::string> files = await_shared_files(job);
  ASSERT_FALSE(files.empty()) << job.err();
  ::usleep(500'000); // both have joined, or are about to
  triax::test::send_signal(job.pid(), SIGTERM);
  job.wait();
  for (const std::string& file : files) EXPECT_FALSE(std::filesystem::exists(file)) << file << job.err();
}

std::vector<std::string> long_training() {
  return {"train", "run.toml", "--set", "parallel.pipeline=2", "--set", "train.steps=1000000"};
}

/// A rank that is killed removes nothing, and the others end without MPI_Finalize.
TEST(Launcher, RemovesTheSharedMemoryOfARankThatIsKilled) {
  const triax::test::TempFolder folder;
  triax::test::TrainProcess job(fill_folder(folder), "triax", long_training());
  const std::vector<std::string> files = await_shared_files(job);
  ASSERT_FALSE(files.empty()) << job.err();
  triax::test::send_signal(job.ranks().back(), SIGKILL);
  job.wait();
  for (const std::string& file : files) EXPECT_FALSE(std::filesystem::exists(file)) << file << job.err();
}

/// The next job on the machine removes it.
TEST(Launcher, RemovesTheSharedMemoryOfAJobWhoseLauncherWasKilled) {
  const triax::test::TempFolder folder;
  triax::test::TrainProcess job(fill_folder(folder), "triax", long_training());
  const std::vector<std::string> files = await_shared_files(job);
  ASSERT_FALSE(files.empty()) << job.err();
  triax::test::send_signal(job.pid(), SIGKILL);
  job.wait();
  const triax::test::Outcome next = triax::test::run(
      folder.path(), "train run.toml --set parallel.pipeline=2 --set train.steps=2 --set run.dir=next", "2>&1");
  EXPECT_EQ(next.status, 0) << next.text;
  for (const std::string& file : files) EXPECT_FALSE(std::filesystem::exists(file)) << file;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::temp_directory_path())) {
    const std::string name = entry.path().filename().string();
    EXPECT_FALSE(name.starts_with("pmix_dstor") && name.ends_with("_" + std::to_string(job.pid()))) << name;
  }
}

/// PMIx would not return.
TEST(Launcher, IsRefusedWithoutSpaceForPmix) {
  const triax::test::TempFolder folder;
  const triax::test::Outcome out = triax::test::run_command(
      "cd '" + fill_folder(folder).string() + "' && ulimit -f 8192 && '" +
      (triax::test::installation() / "bin/triax").string() + "' train run.toml --set parallel.pipeline=2 2>&1");
  EXPECT_NE(out.status, 0);
  EXPECT_THAT(out.text, ContainsRegex("the file size limit of this process is [48] MiB, but PMIx needs 16 MiB"));
}

/// Open MPI names the shared memory of a job after the job: the second would use that of the first.
TEST(Jobs, OfOneMachineDoNotDisturbEachOther) {
  const triax::test::TempFolder folder;
  triax::test::fill_tiny_folder(folder, kTables);
  const triax::test::Outcome out = triax::test::run(
      folder.path(),
      "compare run.toml --same --rounds 4 --turn-ms 0 --set train.steps=60 --set comm.plugin=comm-mpi --set "
      "parallel.pipeline=2",
      "2>&1");
  EXPECT_EQ(out.status, 0) << out.text;
  EXPECT_THAT(out.text, HasSubstr("losses: bit-equal in"));
}

} // namespace
} // namespace triax::comm_mpi::test
