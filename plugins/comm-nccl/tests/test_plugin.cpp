// SPDX-License-Identifier: Apache-2.0
// The plugin on any machine: its description without a driver, and its refusals.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gmock/gmock.h>

#include "api.hpp"
#include "results.hpp"
#include "support/installation.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"

namespace triax::test {
namespace {

using ::testing::HasSubstr;

bool has_driver() {
  int driver = 0;
  return cudaDriverGetVersion(&driver) == cudaSuccess && driver != 0;
}

class Plugin : public ::testing::Test {
 protected:
  void prepare(const std::string& kernels) {
    std::string toml = read_file(test_file("base.toml"));
    replace_all(toml, "kernels-reference", kernels);
    replace_all(toml, "comm-local", "comm-nccl");
    write_file(work_ / "run.toml", toml);
    write_file(work_ / "text.txt", std::string(1000, 'x'));
    ASSERT_EQ(program("data prepare --input text.txt --output text --tokenizer byte").status, 0);
  }
  Outcome program(const std::string& arguments, const std::string& streams = "2>&1") const {
    return run(work_.path(), arguments, streams);
  }
  TempFolder work_;
};

TEST_F(Plugin, DescribeAndListNeedNoDriver) {
  const Outcome described = program("plugins describe comm-nccl");
  EXPECT_EQ(described.status, 0) << described.text;
  for (const char* key : {"edge_communicators", "several_ranks_per_gpu", "register_buffers"})
    EXPECT_THAT(described.text, HasSubstr(key));
  EXPECT_THAT(program("plugins list").text, HasSubstr("comm-nccl"));
}

TEST_F(Plugin, LoadsWithoutTheDriversLibrary) {
  void* library = ::dlopen(plugin_file("comm-nccl").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << ::dlerror();
  if (!has_driver()) {
    EXPECT_FALSE(::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));
  }
}

TEST_F(Plugin, TheLinkedNcclIsNewEnough) {
  EXPECT_TRUE(triax::comm_nccl::check_version(triax::comm_nccl::linked_api()).empty());
}

TEST_F(Plugin, ARunOnTheHostIsRefused) {
  prepare("kernels-reference");
  const Outcome refused = program("check run.toml --no-device --set parallel.tensor=2", "2>&1 >/dev/null");
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(
      refused.text,
      "run.toml:16:10: comm.plugin \"comm-nccl\" for the tensor axis: comm-nccl moves CUDA memory; the kernel set's "
      "device is host\n"
      "  use a kernel set that computes on GPUs, or a communicator for memory of the host: comm-ucx, comm-local\n");
}

TEST_F(Plugin, ARunOnGpusPassesTheCheckOfTheRunAlone) {
  prepare("kernels-cublas");
  for (const char* axis : {"pipeline", "tensor", "data"}) {
    const Outcome outcome = program(text("check run.toml --no-device --set parallel.{}=2", axis));
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr("lib/triax/plugins/comm-nccl.so\n"));
  }
  EXPECT_EQ(program("check run.toml --no-device --set parallel.pipeline=2 --set comm.edge_communicators=true").status,
            0);
}

TEST_F(Plugin, EdgesOfOneAxisNeedATableOfTheirOwn) {
  prepare("kernels-cublas");
  const std::string both = "check run.toml --no-device --set parallel.pipeline=2 --set parallel.tensor=2";
  const Outcome refused = program(both + " --set comm.edge_communicators=true", "2>&1 >/dev/null");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.text, HasSubstr("edge_communicators = true is only for the pipeline axis, but this table serves "
                                      "the tensor axis\n  comm.edge_communicators is set by --set\n"
                                      "  set it in the table [comm.pipeline]: edge_communicators = true\n"));
  const Outcome outcome = program(both + " --set comm.pipeline.edge_communicators=true");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
}

TEST_F(Plugin, WithoutADriverEveryRankSaysSo) {
  if (has_driver()) GTEST_SKIP() << "this machine has a CUDA driver";
  prepare("kernels-cublas");
  const Outcome refused = program("train run.toml --set parallel.data=2", "2>&1 >/dev/null");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.text, HasSubstr("kernels.plugin \"kernels-cublas\": no CUDA driver on this machine"));
}

TEST_F(Plugin, TheEnvironmentMayRefuseARun) {
  prepare("kernels-cublas");
  ::setenv("NCCL_COMM_BLOCKING", "1", 1);
  const Outcome refused = program("check run.toml --no-device --set parallel.data=2", "2>&1 >/dev/null");
  ::unsetenv("NCCL_COMM_BLOCKING");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.text, HasSubstr("NCCL_COMM_BLOCKING = 1 in the environment"));
  EXPECT_THAT(refused.text, HasSubstr("\n  unset NCCL_COMM_BLOCKING\n"));
}

} // namespace
} // namespace triax::test
