// SPDX-License-Identifier: Apache-2.0
// Environment variables that affect the options.
#include <gmock/gmock.h>

#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "members.hpp"
#include "nccl_settings.hpp"

namespace triax::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using triax::comm_nccl::read_settings;
using triax::comm_nccl::Settings;
using triax::test::Rank;

constexpr const char* kRead[] = {"NCCL_COMM_BLOCKING",
                                 "NCCL_COMM_ID",
                                 "CUDA_DEVICE_MAX_CONNECTIONS",
                                 "CUDA_LAUNCH_BLOCKING",
                                 "NCCL_LAUNCH_ORDER_IMPLICIT",
                                 "NCCL_P2P_DISABLE",
                                 "NCCL_SHM_DISABLE",
                                 "NCCL_IB_DISABLE",
                                 "NCCL_P2P_LEVEL",
                                 "NCCL_HOSTID",
                                 "NCCL_ASYNC_ERROR_HANDLING",
                                 "TORCH_NCCL_ASYNC_ERROR_HANDLING",
                                 "NCCL_BLOCKING_WAIT",
                                 "TORCH_NCCL_BLOCKING_WAIT"};

class Environment : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kRead) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      ::unsetenv(name);
    }
  }
  void TearDown() override {
    for (const char* name : kRead) ::unsetenv(name);
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  static Settings with(const char* name, const char* value, bool edges = false, bool shared = false) {
    ::setenv(name, value, 1);
    Settings out = read_settings(communication({.edge_communicators = edges, .several_ranks_per_gpu = shared}).options);
    ::unsetenv(name);
    return out;
  }

 private:
  std::map<std::string, std::string> before_;
};

TEST_F(Environment, AnEmptyOneSaysNothing) {
  const Settings settings = with("NCCL_P2P_LEVEL", "");
  EXPECT_THAT(settings.notes, IsEmpty());
  EXPECT_TRUE(settings.refusals.empty());
  EXPECT_TRUE(settings.order_refusals.empty());
}

TEST_F(Environment, BlockingCallsAreRefused) {
  const Settings settings = with("NCCL_COMM_BLOCKING", "1");
  EXPECT_THAT(settings.refusals.front().message,
              HasSubstr("NCCL_COMM_BLOCKING = 1 in the environment: NCCL's calls would block"));
  EXPECT_EQ(settings.refusals.front().hint, "unset NCCL_COMM_BLOCKING");
  EXPECT_TRUE(with("NCCL_COMM_BLOCKING", "0").refusals.empty());
  for (const char* one : {"01", "0x1", " 1"}) EXPECT_FALSE(with("NCCL_COMM_BLOCKING", one).refusals.empty()) << one;
}

TEST_F(Environment, OneAddressForAllGroupsIsRefused) {
  EXPECT_THAT(with("NCCL_COMM_ID", "127.0.0.1:5000").refusals.front().message,
              HasSubstr("NCCL_COMM_ID = 127.0.0.1:5000"));
}

TEST_F(Environment, OneQueueIsNotedAndRefusedWhereEdgesAreToGoSideBySide) {
  const Settings plain = with("CUDA_DEVICE_MAX_CONNECTIONS", "1");
  EXPECT_TRUE(plain.refusals.empty());
  EXPECT_THAT(plain.notes, ElementsAre(HasSubstr("all streams of the GPU share one queue")));
  const Settings edges = with("CUDA_DEVICE_MAX_CONNECTIONS", "1", true);
  EXPECT_THAT(edges.refusals.front().message,
              HasSubstr("edge_communicators = true, but CUDA_DEVICE_MAX_CONNECTIONS = 1"));
  EXPECT_TRUE(with("CUDA_DEVICE_MAX_CONNECTIONS", "32", true).refusals.empty());
}

TEST_F(Environment, BlockingLaunchesAreRefused) {
  const Settings settings = with("CUDA_LAUNCH_BLOCKING", "1");
  EXPECT_THAT(settings.refusals.front().message,
              HasSubstr("CUDA_LAUNCH_BLOCKING = 1 in the environment: each call would wait"));
  EXPECT_EQ(settings.refusals.front().hint, "unset CUDA_LAUNCH_BLOCKING");
  EXPECT_EQ(with("CUDA_LAUNCH_BLOCKING", "2").refusals.size(), 1u);
  EXPECT_TRUE(with("CUDA_LAUNCH_BLOCKING", "0").refusals.empty());
  EXPECT_TRUE(with("CUDA_LAUNCH_BLOCKING", "").refusals.empty());
}

/// Keeps the lines that the backend logs.
class Lines final : public Log {
 public:
  bool enabled(LogLevel) const noexcept override { return true; }
  void write(LogLevel, std::string_view line) noexcept override { all.emplace_back(line); }
  std::vector<std::string> all;
};

/// What a backend does with an NCCL of this version: its refusal, its log lines, and the variables it sets for NCCL.
struct BackendReport {
  std::string refusal;
  std::vector<std::string> log, variables;
};
BackendReport report_with(int version) {
  Lines lines;
  triax::test::Communication given = communication({.process = [version](int rank) {
    return FakeProcess{rank, text("GPU {}", rank), version};
  }});
  given.log = &lines;
  BackendReport out;
  triax::test::run_ranks(
      1,
      [&out](Rank& rank) {
        try {
          const CommRequest request{DeviceKind::cuda, {"tensor", "data"}, false};
          for (const Refusal& refusal : rank.backend().supports(request)) out.refusal += refusal.message;
        } catch (const Error& error) {
          out.refusal = error.message();
        }
      },
      given);
  out.log = lines.all;
  out.variables = counts().variables;
  return out;
}

TEST_F(Environment, NcclIsAskedToKeepTheHostsOrder) {
  const std::string asked = "NCCL_LAUNCH_ORDER_IMPLICIT = 1";
  const BackendReport newer = report_with(NCCL_VERSION(2, 26, 0));
  EXPECT_EQ(newer.refusal, "");
  EXPECT_THAT(newer.variables, Contains(asked));
  EXPECT_THAT(newer.log, Contains(HasSubstr("sets " + asked)));
  const BackendReport older = report_with(NCCL_VERSION(2, 25, 1));
  EXPECT_EQ(older.refusal, "");
  EXPECT_THAT(older.variables, ::testing::Not(Contains(asked)));
  EXPECT_THAT(older.log,
              Contains(HasSubstr("NCCL 2.25.1 does not order calls of different communicators; 2.26.0 and later do")));
  ::setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 1);
  const BackendReport set = report_with(NCCL_VERSION(2, 26, 0));
  EXPECT_EQ(set.refusal, "");
  EXPECT_THAT(set.variables, ::testing::Not(Contains(asked)));
}

TEST_F(Environment, AnyOrderIsRefusedWhereNcclReadsThat) {
  ::setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "0", 1);
  EXPECT_THAT(report_with(NCCL_VERSION(2, 26, 0)).refusal,
              HasSubstr("NCCL_LAUNCH_ORDER_IMPLICIT = 0 in the environment: calls of several communicators"));
  EXPECT_EQ(report_with(NCCL_VERSION(2, 25, 1)).refusal, "");
}

TEST_F(Environment, SlowerWaysAndOthersVariablesAreNoted) {
  for (const char* name : {"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE"}) {
    EXPECT_THAT(with(name, "1").notes, ElementsAre(HasSubstr(name)));
    EXPECT_THAT(with(name, "0").notes, IsEmpty());
  }
  EXPECT_THAT(with("NCCL_P2P_LEVEL", "NVL").notes, ElementsAre(HasSubstr("NCCL_P2P_LEVEL = NVL")));
  for (const char* name : {"NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_BLOCKING_WAIT",
                           "TORCH_NCCL_BLOCKING_WAIT"})
    EXPECT_THAT(with(name, "1").notes, ElementsAre(HasSubstr(text("{} has no effect: only PyTorch reads it", name))));
}

TEST_F(Environment, AHostIdIsNotedUnlessRanksShareAGpu) {
  EXPECT_THAT(with("NCCL_HOSTID", "a").notes, ElementsAre(HasSubstr("NCCL_HOSTID = a")));
  EXPECT_THAT(with("NCCL_HOSTID", "a", false, true).notes, IsEmpty());
}

TEST_F(Environment, StandsWhereRanksShareAGpu) {
  ::setenv("NCCL_HOSTID", "mine", 1);
  for (const triax::comm_nccl::Variable& variable : triax::comm_nccl::variables_for_shared_gpu(3))
    EXPECT_NE(variable.name, "NCCL_HOSTID");
  ::unsetenv("NCCL_HOSTID");
  EXPECT_EQ(triax::comm_nccl::variables_for_shared_gpu(3).front().value, "triax-rank-3");
}

} // namespace
} // namespace triax::test
