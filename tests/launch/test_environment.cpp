// SPDX-License-Identifier: Apache-2.0
// The environment variables of each launcher: what is read from them, and which combinations are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "launch/environment.hpp"
#include "triax/error.hpp"

namespace triax::launch {
namespace {

using testing::AllOf;
using testing::Ge;
using testing::HasSubstr;
using testing::Lt;

/// Environment variables of one launcher; with() and without() return a changed copy.
class Shell {
 public:
  using Values = std::map<std::string, std::string>;
  Shell(std::initializer_list<Values::value_type> values) : values_(values) {}

  Shell with(std::initializer_list<Values::value_type> changes) const {
    Shell out = *this;
    for (const auto& [name, value] : changes) out.values_[name] = value;
    return out;
  }
  Shell without(std::initializer_list<const char*> names) const {
    Shell out = *this;
    for (const char* name : names) out.values_.erase(name);
    return out;
  }
  std::optional<Environment> find() const {
    return find_environment([this](const char* name) -> const char* {
      const auto value = values_.find(name);
      return value == values_.end() ? nullptr : value->second.c_str();
    });
  }
  Environment found() const {
    const std::optional<Environment> out = find();
    EXPECT_TRUE(out);
    return out.value_or(Environment{});
  }
  std::string refusal() const {
    try {
      return find() ? "it was accepted" : "no launcher was found";
    } catch (const Error& error) {
      return error.what();
    }
  }

 private:
  Values values_;
};

std::string server_of(const Environment& environment) {
  return text("{}:{}", environment.server.host, environment.server.port);
}

const Shell kTorchrun = {{"RANK", "5"},
                         {"WORLD_SIZE", "8"},
                         {"LOCAL_RANK", "1"},
                         {"LOCAL_WORLD_SIZE", "4"},
                         {"MASTER_ADDR", "node0"},
                         {"MASTER_PORT", "29500"}};

// As set by mpirun 4.1, without irrelevant variables.
const Shell kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "2"},       {"OMPI_COMM_WORLD_SIZE", "4"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "2"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                        {"OMPI_COMM_WORLD_NODE_RANK", "2"},  {"OMPI_MCA_ess_base_jobid", "1863581697"},
                        {"PMIX_NAMESPACE", "1863581697"},    {"PMIX_RANK", "2"}};

// As set by Slurm 22.05 for task 4 of srun -N2 -n5.
const Shell kSlurm = {{"SLURM_JOB_ID", "7"},
                      {"SLURM_STEP_ID", "0"},
                      {"SLURM_PROCID", "4"},
                      {"SLURM_LOCALID", "1"},
                      {"SLURM_NODEID", "1"},
                      {"SLURM_NTASKS", "5"},
                      {"SLURM_STEP_NUM_TASKS", "5"},
                      {"SLURM_TASKS_PER_NODE", "3,2"},
                      {"SLURM_STEP_TASKS_PER_NODE", "3,2"},
                      {"SLURM_STEP_NODELIST", "gpu[003-004]"},
                      {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.9"}};

TEST(Environment, FindsNoLauncherInAShell) {
  EXPECT_FALSE(Shell({{"PATH", "/bin"}}).find());
  EXPECT_FALSE(Shell({{"RANK", "general"}}).find());
  EXPECT_FALSE(Shell({{"LOCAL_RANK", "0"}}).find());
  EXPECT_FALSE(Shell({{"WORLD_SIZE", "4"}}).find());
  EXPECT_FALSE(Shell({{"WORLD_SIZE", "1"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "1"}}).find());
  EXPECT_FALSE(Shell({{"WORLD_SIZE", "large"}, {"MASTER_ADDR", "node0"}}).find());
  EXPECT_FALSE(Shell({{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "1"}}).find());
  EXPECT_FALSE(Shell({{"RANK", "general"}, {"MASTER_ADDR", "node0"}}).find());
  EXPECT_FALSE(Shell({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}).find()) << "mpiexec -n 1 bash";
  EXPECT_FALSE(Shell({{"RANK", ""}, {"WORLD_SIZE", "4"}}).find()) << "set to nothing is not set";
}

TEST(Environment, Torchrun) {
  const Environment found = kTorchrun.found();
  EXPECT_EQ(found.launcher, Launcher::torchrun);
  EXPECT_EQ(name_of(found.launcher), "torchrun");
  EXPECT_EQ(found.rank, 5);
  EXPECT_EQ(found.world, 8);
  EXPECT_EQ(found.local_rank, 1);
  EXPECT_EQ(found.local_world, 4);
  EXPECT_EQ(server_of(found), "node0:29500");
  EXPECT_TRUE(found.serves) << "rank 0 does, and every rank knows";
  EXPECT_EQ(kTorchrun.without({"LOCAL_WORLD_SIZE"}).found().local_world, 8);
}

TEST(Environment, TheStoreOfTorchrunsAgentKeepsItsPort) {
  const Shell agent = kTorchrun.with({{"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  EXPECT_EQ(agent.found().server.port, 29501);
  EXPECT_EQ(kTorchrun.with({{"TORCHELASTIC_USE_AGENT_STORE", "False"}}).found().server.port, 29500);
  EXPECT_EQ(agent.with({{"MASTER_PORT", "65535"}}).refusal(),
            "environment of torchrun: MASTER_PORT = 65535 is too large: torchrun's agent listens on "
            "MASTER_PORT, rank 0 on the next port\n  start torchrun with a smaller --master-port");
}

TEST(Environment, OneOfTheFiveIsMissing) {
  for (const char* name : {"WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}) {
    EXPECT_EQ(kTorchrun.without({name}).refusal(),
              "environment of torchrun: " + std::string(name) +
                  " is missing\n  set RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, or unset all of "
                  "them to start the ranks here");
    EXPECT_THAT(kTorchrun.with({{name, ""}}).refusal(), HasSubstr(std::string(name) + " is missing"));
  }
  EXPECT_THAT(Shell({{"TRIAX_LAUNCHER", "17"}}).refusal(), HasSubstr("environment of triax: RANK is missing"));
}

TEST(Environment, RefusesARankWithoutItsNumber) {
  EXPECT_EQ(kTorchrun.without({"RANK"}).refusal(),
            "environment: WORLD_SIZE = 8 and MASTER_ADDR = node0 are set, but RANK is missing\n  set RANK, WORLD_SIZE, "
            "LOCAL_RANK, MASTER_ADDR and MASTER_PORT, or unset all of them to start the ranks here");
  EXPECT_THAT(Shell({{"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node0"}}).refusal(), HasSubstr("RANK is missing"));
  EXPECT_THAT(Shell({{"RANK", ""}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}}).refusal(),
              HasSubstr("WORLD_SIZE = 4 and LOCAL_RANK = 1 are set, but RANK is missing"));
  EXPECT_THAT(Shell({{"RANK", "3"}, {"MASTER_ADDR", "node0"}}).refusal(),
              HasSubstr("environment of torchrun: WORLD_SIZE is missing"));
  EXPECT_EQ(Shell({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}}).refusal(),
            "environment: PMI_RANK = 1 and PMI_SIZE = 4: this process was started by an mpiexec other than Open MPI's\n"
            "  start the ranks with Open MPI's mpirun, with srun or with torchrun, or unset PMI_RANK and PMI_SIZE to "
            "start the ranks here");
  EXPECT_EQ(kSlurm.with({{"PMI_RANK", "4"}, {"PMI_SIZE", "5"}}).found().rank, 4) << "srun --mpi=pmi2";
}

TEST(Environment, NumbersAreDigitsAlone) {
  for (const char* value : {"-1", "+1", "1x", " 1", "1 ", "0x1", "1.0", "99999999999"}) {
    EXPECT_THAT(kTorchrun.with({{"RANK", value}}).refusal(),
                HasSubstr("RANK must be a number of at least 0, got \"" + std::string(value) + "\""));
  }
  EXPECT_EQ(kTorchrun.with({{"RANK", "05"}}).found().rank, 5);
  EXPECT_THAT(kTorchrun.with({{"MASTER_PORT", "0"}}).refusal(),
              HasSubstr("MASTER_PORT = 0 is not a port (1 to 65535)"));
  EXPECT_THAT(kTorchrun.with({{"MASTER_PORT", "65536"}}).refusal(), HasSubstr("MASTER_PORT = 65536 is not a port"));
  EXPECT_EQ(kTorchrun.with({{"MASTER_PORT", "65535"}}).found().server.port, 65535);
}

TEST(Environment, ContradictionsAreRefused) {
  EXPECT_THAT(kTorchrun.with({{"RANK", "8"}}).refusal(), HasSubstr("RANK must be less than WORLD_SIZE = 8, got 8"));
  EXPECT_THAT(kTorchrun.with({{"WORLD_SIZE", "0"}}).refusal(),
              HasSubstr("RANK must be less than WORLD_SIZE = 0, got 5"));
  EXPECT_THAT(kTorchrun.with({{"LOCAL_RANK", "4"}}).refusal(),
              HasSubstr("LOCAL_RANK must be less than LOCAL_WORLD_SIZE = 4, got 4"));
  EXPECT_THAT(kTorchrun.with({{"LOCAL_WORLD_SIZE", "9"}}).refusal(),
              HasSubstr("LOCAL_WORLD_SIZE must be at most WORLD_SIZE = 8, got 9"));
  EXPECT_THAT(kTorchrun.without({"LOCAL_WORLD_SIZE"}).with({{"LOCAL_RANK", "8"}}).refusal(),
              HasSubstr("LOCAL_RANK must be less than WORLD_SIZE = 8, got 8"));
}

TEST(Environment, TheOwnLauncherServes) {
  const Shell own = kTorchrun.with({{"TRIAX_LAUNCHER", "4211"}, {"RANK", "0"}, {"LOCAL_RANK", "0"}});
  const Environment found = own.found();
  EXPECT_EQ(found.launcher, Launcher::triax);
  EXPECT_EQ(name_of(found.launcher), "triax");
  EXPECT_EQ(server_of(found), "node0:29500");
  EXPECT_EQ(found.launcher_process, 4211);
  EXPECT_FALSE(found.serves) << "its launcher does";
  EXPECT_THAT(own.with({{"TRIAX_LAUNCHER", "x"}}).refusal(),
              HasSubstr("TRIAX_LAUNCHER must be a number of at least 0, got \"x\"\n  unset it: "));
  EXPECT_THAT(own.with({{"TRIAX_LAUNCHER", "0"}}).refusal(), HasSubstr("TRIAX_LAUNCHER = 0 is not a process\n  unset"));
  EXPECT_EQ(own.with({{"TORCHELASTIC_USE_AGENT_STORE", "True"}}).found().server.port, 29500)
      << "left over from around the launcher";
}

TEST(Environment, OpenMpi) {
  const Environment found = kOpenMpi.found();
  EXPECT_EQ(found.launcher, Launcher::open_mpi);
  EXPECT_EQ(name_of(found.launcher), "Open MPI");
  EXPECT_EQ(found.rank, 2);
  EXPECT_EQ(found.world, 4);
  EXPECT_EQ(found.local_rank, 2);
  EXPECT_EQ(found.local_world, 4);
  EXPECT_EQ(found.server.host, "127.0.0.1");
  EXPECT_TRUE(found.serves);
  const Shell first = kOpenMpi.with({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}});
  EXPECT_EQ(first.found().server.port, found.server.port) << "the same for all ranks";
  EXPECT_EQ(server_of(kOpenMpi.with({{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}}).found()), "node0:29500");
}

TEST(Environment, OpenMpiOnSeveralMachinesNeedsTheNameOfTheFirst) {
  const Shell two = kOpenMpi.with({{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}});
  EXPECT_EQ(
      two.refusal(),
      "environment of Open MPI: MASTER_ADDR is missing: 2 of 4 ranks are on this machine, but mpirun does not say "
      "where rank 0 is\n  pass the name of rank 0's machine: mpirun -x MASTER_ADDR=node0");
  EXPECT_EQ(two.with({{"MASTER_ADDR", "node0"}}).found().server.host, "node0");
}

TEST(Environment, OpenMpiJobsHavePortsOfTheirOwn) {
  const int port = kOpenMpi.found().server.port;
  EXPECT_THAT(port, AllOf(Ge(20000), Lt(32768)));
  const Shell next = kOpenMpi.with({{"PMIX_NAMESPACE", "1863647233"}});
  EXPECT_NE(next.found().server.port, port);
  EXPECT_EQ(kOpenMpi.without({"PMIX_NAMESPACE"}).found().server.port, port) << "the other variable has the same id";
  EXPECT_THAT(kOpenMpi.with({{"PMIX_NAMESPACE", "prterun-node0-1234@1"}}).found().server.port,
              AllOf(Ge(20000), Lt(32768)));
  const Shell nameless = kOpenMpi.without({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"});
  EXPECT_THAT(nameless.refusal(),
              HasSubstr("cannot identify the job: neither PMIX_NAMESPACE nor OMPI_MCA_ess_base_jobid is "
                        "set\n  choose a port: mpirun -x MASTER_PORT=29500"));
  EXPECT_EQ(nameless.with({{"MASTER_PORT", "29500"}}).found().server.port, 29500);
}

TEST(Environment, OpenMpiIncompleteOrContradictory) {
  for (const char* name :
       {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"}) {
    EXPECT_THAT(kOpenMpi.without({name}).refusal(),
                HasSubstr("environment of Open MPI: " + std::string(name) + " is missing"));
  }
  EXPECT_THAT(kOpenMpi.with({{"OMPI_COMM_WORLD_RANK", "4"}}).refusal(),
              HasSubstr("OMPI_COMM_WORLD_RANK must be less than OMPI_COMM_WORLD_SIZE = 4, got 4"));
  EXPECT_THAT(kOpenMpi.with({{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}).refusal(),
              HasSubstr("OMPI_COMM_WORLD_LOCAL_RANK must be less than OMPI_COMM_WORLD_LOCAL_SIZE = 2, got 2"));
  EXPECT_THAT(kOpenMpi.with({{"OMPI_COMM_WORLD_LOCAL_SIZE", "5"}}).refusal(),
              HasSubstr("OMPI_COMM_WORLD_LOCAL_SIZE must be at most OMPI_COMM_WORLD_SIZE = 4, got 5"));
  EXPECT_THAT(kOpenMpi.with({{"MASTER_PORT", "0"}}).refusal(), HasSubstr("MASTER_PORT = 0 is not a port"));
}

TEST(Environment, Slurm) {
  const Environment found = kSlurm.found();
  EXPECT_EQ(found.launcher, Launcher::slurm);
  EXPECT_EQ(name_of(found.launcher), "Slurm");
  EXPECT_EQ(found.rank, 4);
  EXPECT_EQ(found.world, 5);
  EXPECT_EQ(found.local_rank, 1);
  EXPECT_EQ(found.local_world, 2);
  EXPECT_EQ(found.server.host, "gpu003");
  EXPECT_TRUE(found.serves);
  const Environment first = kSlurm.with({{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "0"}}).found();
  EXPECT_EQ(first.local_world, 3);
  EXPECT_EQ(first.server.port, found.server.port) << "the same for all ranks";
  EXPECT_EQ(server_of(kSlurm.with({{"MASTER_ADDR", "10.0.0.7"}, {"MASTER_PORT", "29500"}}).found()), "10.0.0.7:29500");
}

TEST(Environment, SlurmStepsHavePortsOfTheirOwn) {
  const int port = kSlurm.found().server.port;
  EXPECT_THAT(port, AllOf(Ge(20000), Lt(32768)));
  EXPECT_NE(kSlurm.with({{"SLURM_STEP_ID", "1"}}).found().server.port, port);
  EXPECT_NE(kSlurm.with({{"SLURM_JOB_ID", "8"}}).found().server.port, port);
  EXPECT_THAT(kSlurm.without({"SLURM_JOB_ID"}).refusal(),
              HasSubstr("SLURM_JOB_ID is missing\n  choose a port: srun --export=ALL,MASTER_PORT=29500"));
}

TEST(Environment, TheStepsNumbersWin) {
  // srun -n5 in a job of 8 tasks on 3 nodes.
  EXPECT_EQ(kSlurm.with({{"SLURM_NTASKS", "8"}, {"SLURM_TASKS_PER_NODE", "3(x2),2"}}).found().world, 5);
  const Environment without = kSlurm.without({"SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"}).found();
  EXPECT_EQ(without.world, 5);
  EXPECT_EQ(without.local_world, 2);
}

TEST(Environment, FindsNoRankInASlurmBatchScriptOrShell) {
  EXPECT_FALSE(kSlurm.without({"SLURM_STEP_ID"}).find());
  EXPECT_FALSE(kSlurm.without({"SLURM_PROCID"}).find());
  EXPECT_FALSE(kSlurm.with({{"SLURM_STEP_ID", "4294967290"}}).find()) << "salloc's interactive step";
  EXPECT_THAT(kSlurm.with({{"SLURM_STEP_ID", "batch"}}).refusal(),
              HasSubstr("SLURM_STEP_ID must be a number of at least 0, got \"batch\""));
}

TEST(Environment, SlurmIncompleteOrContradictory) {
  for (const char* name : {"SLURM_LOCALID", "SLURM_NODEID", "SLURM_STEP_NODELIST"}) {
    EXPECT_THAT(kSlurm.without({name}).refusal(),
                HasSubstr("environment of Slurm: " + std::string(name) + " is missing\n  start the ranks with srun"));
  }
  EXPECT_THAT(kSlurm.without({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}).refusal(), HasSubstr("SLURM_NTASKS is missing"));
  EXPECT_THAT(kSlurm.without({"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}).refusal(),
              HasSubstr("SLURM_TASKS_PER_NODE is missing"));
  EXPECT_THAT(kSlurm.with({{"SLURM_PROCID", "5"}}).refusal(),
              HasSubstr("SLURM_PROCID must be less than SLURM_STEP_NUM_TASKS = 5, got 5"));
  EXPECT_THAT(kSlurm.with({{"SLURM_LOCALID", "2"}}).refusal(),
              HasSubstr("SLURM_LOCALID must be less than SLURM_STEP_TASKS_PER_NODE = 2, got 2"));
  EXPECT_THAT(kSlurm.with({{"SLURM_NODEID", "2"}}).refusal(),
              HasSubstr("SLURM_NODEID = 2, but SLURM_STEP_TASKS_PER_NODE = \"3,2\" has 2 nodes"));
  EXPECT_THAT(kSlurm.with({{"SLURM_STEP_TASKS_PER_NODE", "3,1"}}).refusal(),
              HasSubstr("SLURM_STEP_NUM_TASKS = 5, but SLURM_STEP_TASKS_PER_NODE = \"3,1\" adds up to 4"));
  EXPECT_EQ(kSlurm.with({{"SLURM_STEP_NODELIST", "gpu[3-"}}).refusal(),
            "environment of Slurm: SLURM_STEP_NODELIST: the node list \"gpu[3-\": it ends, but a number is expected\n"
            "  start the ranks with srun, which sets all SLURM_ variables of a step");
  EXPECT_THAT(kSlurm.with({{"SLURM_STEP_TASKS_PER_NODE", "3(x"}}).refusal(),
              HasSubstr("SLURM_STEP_TASKS_PER_NODE: the list of tasks per node \"3(x\": it ends"));
}

TEST(Environment, TheInnermostLauncherCounts) {
  const auto in_slurm = [](const Shell& inner) {
    return inner.with({{"SLURM_JOB_ID", "7"},
                       {"SLURM_STEP_ID", "0"},
                       {"SLURM_PROCID", "1"},
                       {"SLURM_LOCALID", "0"},
                       {"SLURM_NODEID", "1"},
                       {"SLURM_NTASKS", "2"},
                       {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                       {"SLURM_STEP_NODELIST", "n[0-1]"}});
  };
  EXPECT_EQ(in_slurm(kTorchrun).found().launcher, Launcher::torchrun);
  EXPECT_EQ(in_slurm(kTorchrun).found().rank, 5);
  EXPECT_EQ(in_slurm(kOpenMpi).found().launcher, Launcher::open_mpi);
  EXPECT_EQ(in_slurm(kOpenMpi).found().rank, 2);
  EXPECT_EQ(in_slurm(Shell({})).found().launcher, Launcher::slurm);
  // A script for other trainers may export these for all ranks alike.
  EXPECT_EQ(in_slurm(Shell({{"WORLD_SIZE", "2"}, {"MASTER_ADDR", "n0"}})).found().launcher, Launcher::slurm);
  EXPECT_EQ(in_slurm(Shell({{"RANK", "0"}, {"MASTER_ADDR", "n0"}})).found().launcher, Launcher::slurm);
}

} // namespace
} // namespace triax::launch
