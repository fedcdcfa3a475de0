// SPDX-License-Identifier: Apache-2.0
// Sources of the variables: torchrun's source code; observed under Open MPI 4.1 and Slurm 22.05.
#include "launch/environment.hpp"

#include <charconv>
#include <cstdint>
#include <numeric>

#include "launch/node_list.hpp"
#include "triax/error.hpp"

namespace triax::launch {
namespace {

/// The variables of one launcher. An empty variable counts as unset.
class Reader {
 public:
  Reader(const Variables& variables, Launcher launcher) : variables_(variables), launcher_(launcher) {}

  bool has(const char* name) const { return !find(name).empty(); }
  std::string_view find(const char* name) const {
    const char* value = variables_(name);
    return value ? value : "";
  }
  std::string_view need(const char* name, std::string_view hint) const {
    if (!has(name)) throw error(text("{} is missing", name), hint);
    return find(name);
  }
  /// The value must consist of digits only.
  template <class Number = int>
  Number number(const char* name, std::string_view hint) const {
    const std::string_view value = need(name, hint);
    Number out = 0;
    const auto [end, code] = std::from_chars(value.begin(), value.end(), out);
    if (code != std::errc() || end != value.end() || value.front() == '-')
      throw error(text("{} must be a number of at least 0, got \"{}\"", name, value), hint);
    return out;
  }
  int port(const char* name, std::string_view hint) const {
    const int out = number(name, hint);
    if (out < 1 || out > 65535) throw error(text("{} = {} is not a port (1 to 65535)", name, out), hint);
    return out;
  }
  Error error(const std::string& message, std::string_view hint) const {
    return Error(message, text("environment of {}", name_of(launcher_)), std::string(hint));
  }

 private:
  const Variables& variables_;
  Launcher launcher_;
};

/// Names of the corresponding variables of each launcher.
struct Names {
  const char *rank, *world, *local_rank, *local_world;
};

void check_ranks(const Reader& reader, const Environment& found, const Names& names, std::string_view hint) {
  const auto below = [&](const char* small, int a, const char* large, int b) {
    if (a >= b) throw reader.error(text("{} must be less than {} = {}, got {}", small, large, b, a), hint);
  };
  below(names.rank, found.rank, names.world, found.world);
  below(names.local_rank, found.local_rank, names.local_world, found.local_world);
  if (found.local_world > found.world)
    throw reader.error(
        text("{} must be at most {} = {}, got {}", names.local_world, names.world, found.world, found.local_world),
        hint);
}

/// A port derived from the job id: equal for all ranks of a job, and rarely equal for two jobs on one machine. Below
/// 32768, where Linux's range for outgoing connections starts.
int port_of_job(std::string_view job) {
  constexpr std::uint32_t kFirst = 20000, kEnd = 32768;
  std::uint32_t hash = 2166136261u; // FNV-1a: job ids may differ in one digit
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return static_cast<int>(kFirst + hash % (kEnd - kFirst));
}

constexpr std::string_view kTorchrunHint =
    "set RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, or unset all of them to start the ranks here";

constexpr std::string_view kOwnHint = "unset it: triax train sets it for the ranks that it starts";

Environment read_torchrun(const Variables& variables) {
  // Triax's launcher uses torchrun's variables, and adds TRIAX_LAUNCHER.
  const bool own = Reader(variables, Launcher::triax).has("TRIAX_LAUNCHER");
  Environment out;
  out.launcher = own ? Launcher::triax : Launcher::torchrun;
  const Reader reader(variables, out.launcher);
  out.rank = reader.number("RANK", kTorchrunHint);
  out.world = reader.number("WORLD_SIZE", kTorchrunHint);
  out.local_rank = reader.number("LOCAL_RANK", kTorchrunHint);
  // Without it, the number of ranks on this machine is unknown, and at most all.
  const bool is_set = reader.has("LOCAL_WORLD_SIZE");
  out.local_world = is_set ? reader.number("LOCAL_WORLD_SIZE", kTorchrunHint) : out.world;
  if (own) out.launcher_process = reader.number("TRIAX_LAUNCHER", kOwnHint);
  if (own && out.launcher_process < 1) throw reader.error("TRIAX_LAUNCHER = 0 is not a process", kOwnHint);
  check_ranks(reader, out, {"RANK", "WORLD_SIZE", "LOCAL_RANK", is_set ? "LOCAL_WORLD_SIZE" : "WORLD_SIZE"},
              kTorchrunHint);
  out.server = {std::string(reader.need("MASTER_ADDR", kTorchrunHint)), reader.port("MASTER_PORT", kTorchrunHint)};
  out.job = reader.find("TORCHELASTIC_RUN_ID");
  out.serves = !own;
  if (!own) out.server_variable = "MASTER_ADDR";
  // torchrun's agent may listen on MASTER_PORT itself, for torch's store.
  if (!own && reader.find("TORCHELASTIC_USE_AGENT_STORE") == "True" && ++out.server.port > 65535)
    throw reader.error(
        "MASTER_PORT = 65535 is too large: torchrun's agent listens on MASTER_PORT, rank 0 on the "
        "next port",
        "start torchrun with a smaller --master-port");
  return out;
}

std::string job_of_open_mpi(const Reader& reader) {
  const char* const name = reader.has("PMIX_NAMESPACE") ? "PMIX_NAMESPACE" : "OMPI_MCA_ess_base_jobid";
  return std::string(reader.find(name));
}

int port_of_open_mpi(const Reader& reader, const std::string& job) {
  if (reader.has("MASTER_PORT")) return reader.port("MASTER_PORT", "mpirun -x MASTER_PORT=29500");
  if (!job.empty()) return port_of_job(job);
  throw reader.error("cannot identify the job: neither PMIX_NAMESPACE nor OMPI_MCA_ess_base_jobid is set",
                     "choose a port: mpirun -x MASTER_PORT=29500");
}

Environment read_open_mpi(const Variables& variables) {
  const Reader reader(variables, Launcher::open_mpi);
  const Names names = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                       "OMPI_COMM_WORLD_LOCAL_SIZE"};
  const std::string_view hint = "start the ranks with mpirun, which sets all OMPI_COMM_WORLD_ variables";
  Environment out;
  out.launcher = Launcher::open_mpi;
  out.rank = reader.number(names.rank, hint);
  out.world = reader.number(names.world, hint);
  out.local_rank = reader.number(names.local_rank, hint);
  out.local_world = reader.number(names.local_world, hint);
  check_ranks(reader, out, names, hint);
  if (reader.has("MASTER_ADDR")) {
    out.server.host = reader.find("MASTER_ADDR");
    out.server_variable = "MASTER_ADDR";
  } else if (out.local_world == out.world) {
    out.server.host = "127.0.0.1";
  } else {
    throw reader.error(
        text("MASTER_ADDR is missing: {} of {} ranks are on this machine, but mpirun does not say where rank 0 is",
             out.local_world, out.world),
        "pass the name of rank 0's machine: mpirun -x MASTER_ADDR=node0");
  }
  out.job = job_of_open_mpi(reader);
  out.server.port = port_of_open_mpi(reader, out.job);
  out.serves = true;
  return out;
}

constexpr std::string_view kSrunHint = "start the ranks with srun, which sets all SLURM_ variables of a step";

/// Whether this is a task of a step started by srun. A batch script has SLURM_PROCID and SLURM_NTASKS too, but no step.
/// An interactive shell, or another step with a number from 0xfffffff0, is not a task.
bool is_slurm_task(const Reader& reader) {
  constexpr std::uint64_t kFirstSpecialStep = 0xfffffff0;
  return reader.has("SLURM_PROCID") && reader.has("SLURM_STEP_ID") &&
         reader.number<std::uint64_t>("SLURM_STEP_ID", kSrunHint) < kFirstSpecialStep;
}

/// Parses a list that Slurm wrote; errors name the variable.
template <class Parse>
auto read_list(const Reader& reader, const char* name, Parse parse) {
  try {
    return parse(reader.need(name, kSrunHint));
  } catch (const Error& error) {
    if (!error.where().empty()) throw; // the variable is missing
    throw reader.error(text("{}: {}", name, error.message()), kSrunHint);
  }
}

/// Nodes of one step may have different numbers of tasks, so the node is not rank / tasks.
int tasks_of_this_node(const Reader& reader, const char* list, const char* world_name, int world) {
  const std::vector<int> tasks = read_list(reader, list, parse_tasks_per_node);
  const int node = reader.number("SLURM_NODEID", kSrunHint);
  if (static_cast<std::size_t>(node) >= tasks.size())
    throw reader.error(
        text("SLURM_NODEID = {}, but {} = \"{}\" has {} nodes", node, list, reader.find(list), tasks.size()),
        kSrunHint);
  const auto all = std::accumulate(tasks.begin(), tasks.end(), std::int64_t{0});
  if (all != world)
    throw reader.error(text("{} = {}, but {} = \"{}\" adds up to {}", world_name, world, list, reader.find(list), all),
                       kSrunHint);
  return tasks[static_cast<std::size_t>(node)];
}

Environment read_slurm(const Variables& variables) {
  const Reader reader(variables, Launcher::slurm);
  const char* world = reader.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  const char* tasks = reader.has("SLURM_STEP_TASKS_PER_NODE") ? "SLURM_STEP_TASKS_PER_NODE" : "SLURM_TASKS_PER_NODE";
  Environment out;
  out.launcher = Launcher::slurm;
  out.rank = reader.number("SLURM_PROCID", kSrunHint);
  out.world = reader.number(world, kSrunHint);
  out.local_rank = reader.number("SLURM_LOCALID", kSrunHint);
  out.local_world = tasks_of_this_node(reader, tasks, world, out.world);
  check_ranks(reader, out, {"SLURM_PROCID", world, "SLURM_LOCALID", tasks}, kSrunHint);
  // Not SLURM_LAUNCH_NODE_IPADDR, which is the host that called srun.
  out.server_variable = reader.has("MASTER_ADDR") ? "MASTER_ADDR" : "SLURM_STEP_NODELIST";
  out.server.host = reader.has("MASTER_ADDR") ? std::string(reader.find("MASTER_ADDR"))
                                              : read_list(reader, "SLURM_STEP_NODELIST", parse_node_list).front();
  if (reader.has("SLURM_JOB_ID")) out.job = text("{}.{}", reader.find("SLURM_JOB_ID"), reader.find("SLURM_STEP_ID"));
  if (reader.has("MASTER_PORT")) {
    out.server.port = reader.port("MASTER_PORT", "srun --export=ALL,MASTER_PORT=29500");
  } else {
    const std::string_view hint = "choose a port: srun --export=ALL,MASTER_PORT=29500";
    reader.need("SLURM_JOB_ID", hint);
    out.server.port = port_of_job(out.job);
  }
  out.serves = true;
  return out;
}

/// The value of a variable, if it is a number; a shell may use the name for other purposes.
std::optional<int> find_number(const Reader& reader, const char* name) {
  const std::string_view value = reader.find(name);
  int out = 0;
  const auto [end, code] = std::from_chars(value.begin(), value.end(), out);
  return code == std::errc() && end == value.end() ? std::optional(out) : std::nullopt;
}

/// One of several ranks, but which one is unknown: each process would start all ranks of the run. WORLD_SIZE or
/// LOCAL_RANK alone may be a remainder of another program.
void refuse_unnumbered_rank(const Reader& reader) {
  const std::optional<int> world = find_number(reader, "WORLD_SIZE");
  const char* other = reader.has("MASTER_ADDR") ? "MASTER_ADDR" : reader.has("LOCAL_RANK") ? "LOCAL_RANK" : nullptr;
  if (world && *world > 1 && other)
    throw Error(text("WORLD_SIZE = {} and {} = {} are set, but RANK is missing", *world, other, reader.find(other)),
                "environment", std::string(kTorchrunHint));
  // Set by the mpiexec of MPICH and of Intel MPI. Under srun --mpi=pmi2 the process is a Slurm task.
  const std::optional<int> size = find_number(reader, "PMI_SIZE");
  if (size && *size > 1 && reader.has("PMI_RANK"))
    throw Error(text("PMI_RANK = {} and PMI_SIZE = {}: this process was started by an mpiexec other than Open MPI's",
                     reader.find("PMI_RANK"), *size),
                "environment",
                "start the ranks with Open MPI's mpirun, with srun or with torchrun, or unset PMI_RANK and PMI_SIZE to "
                "start the ranks here");
}

} // namespace

std::string_view name_of(Launcher launcher) {
  switch (launcher) {
    case Launcher::triax:
      return "triax";
    case Launcher::torchrun:
      return "torchrun";
    case Launcher::open_mpi:
      return "Open MPI";
    case Launcher::slurm:
      return "Slurm";
  }
  return "?";
}

// The innermost launcher comes first. srun often starts one torchrun per node. Inside a Slurm job, mpirun starts its
// daemons with srun. In both cases the SLURM_ variables number the nodes, not the ranks.
std::optional<Environment> find_environment(const Variables& variables) {
  const Reader reader(variables, Launcher::triax);
  const auto has = [&reader](const char* name) { return reader.has(name); };
  // RANK or WORLD_SIZE alone may be set in a shell for another purpose.
  if (has("TRIAX_LAUNCHER") || (has("RANK") && (has("WORLD_SIZE") || has("LOCAL_RANK"))))
    return read_torchrun(variables);
  if (has("OMPI_COMM_WORLD_RANK") || has("OMPI_COMM_WORLD_SIZE")) return read_open_mpi(variables);
  if (is_slurm_task(Reader(variables, Launcher::slurm))) return read_slurm(variables);
  if (find_number(reader, "RANK") && has("MASTER_ADDR")) return read_torchrun(variables);
  refuse_unnumbered_rank(reader);
  return std::nullopt;
}

} // namespace triax::launch
