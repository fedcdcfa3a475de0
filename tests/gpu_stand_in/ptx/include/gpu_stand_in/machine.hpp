// SPDX-License-Identifier: Apache-2.0
// The machine of the GPU stand-in: reads PTX, and runs its kernels on the host with memory and hazard checks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_stand_in/memory.hpp"

namespace triax::gpu_stand_in {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

// PTX that the reader does not know. The message names line, kernel and statement.
struct PtxError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class ErrorKind {
  kIllegalAddress,    // cudaErrorIllegalAddress
  kMisalignedAddress, // cudaErrorMisalignedAddress
  kTrap,              // cudaErrorLaunchFailure
  kUnwritten,         // reads of memory that nothing wrote
  kHazard,            // accesses that nothing orders
  kDivergence,        // a .sync instruction without all lanes of its mask
  kBarrier,           // a barrier that not all threads reach
  kLaunch,            // the launch does not fit the kernel
};

// Error: undefined or invalid behaviour of a kernel. The message names kernel, PTX line, block, warp, lane.
struct MachineError : std::runtime_error {
  MachineError(ErrorKind error, const std::string& message) : std::runtime_error(message), kind(error) {}
  ErrorKind kind;
};

struct Param {
  std::string name;
  std::size_t offset = 0, bytes = 0, align = 1;
};

struct KernelCode; // instructions, private to the machine

struct Kernel {
  std::string name;
  std::vector<Param> params;
  std::size_t param_bytes = 0;
  std::size_t static_shared_bytes = 0;
  std::size_t local_bytes = 0; // of a thread
  Dim3 max_threads{0, 0, 0};   // .maxntid; zeros: not given
  Dim3 required_threads{0, 0, 0};
  std::shared_ptr<const KernelCode> code;
};

struct GlobalVariable {
  std::string name;
  std::size_t bytes = 0, align = 1;
  std::vector<std::byte> initial; // as long as bytes; zeros where PTX gives nothing
  std::uint64_t id = 0;
};

// What one PTX text declares. A kernel is decoded when it is first looked for. Thread-safe.
class Module {
 public:
  virtual ~Module() = default;
  // Null if there is no such kernel. Throws PtxError if the kernel holds what is not known.
  virtual const Kernel* find(std::string_view name) const = 0;
};

// Throws PtxError.
std::shared_ptr<const Module> read_module(std::string_view ptx);

// Kinds of instructions, for counts. What is not listed is kOther: waits for cp.async, fences, nanosleep.
enum class InstructionKind : std::uint8_t {
  kMma,
  kGlobal, // loads, stores, atomics and cp.async; generic addresses, too
  kShared, // loads, stores, atomics and ldmatrix
  kLocal,
  kParam, // constants of machine code: they cost no instruction there
  kFloat,
  kSpecial, // functions of the special function unit, and divisions
  kInteger,
  kConvert,
  kCompare, // setp and selp
  kMove,
  kWarp, // shuffles and votes
  kBarrier,
  kBranch,
  kOther
};
inline constexpr std::size_t kInstructionKinds = 15;
std::string_view name_of(InstructionKind kind);

// What a launch did, for counts that a profiler would give.
struct Profile {
  std::uint64_t launches = 0, blocks = 0, instructions = 0, lanes = 0, mma = 0, shuffles = 0, barriers = 0;
  std::uint64_t requests = 0, sectors = 0, ideal_sectors = 0; // global memory: sectors of 32 bytes
  std::uint64_t memory_sectors = 0; // different ones that a launch reads, and that it writes: what caches cannot save
  std::uint64_t accesses = 0, wavefronts = 0, ideal_wavefronts = 0; // shared memory: 32 banks of 4 bytes
  std::uint64_t divergent = 0;                                      // branches that split a warp
  std::array<std::uint64_t, kInstructionKinds> kinds{};             // instructions by InstructionKind
  Profile& operator+=(const Profile& other);
};

enum class BlockOrder { kForward, kBackward, kSeeded };

struct Launch {
  const Kernel* kernel = nullptr;
  Dim3 grid, block;
  std::size_t dynamic_shared_bytes = 0;
  std::span<const std::byte> params;       // as long as kernel->param_bytes
  BlockOrder order = BlockOrder::kForward; // of blocks, and of warps in a block
  std::uint64_t seed = 0;
  unsigned threads = 0;      // of the host; 0: as many as there are processors
  bool profile = false;      // count sectors, wavefronts and kinds (slower)
  Profile* counts = nullptr; // added to, if given
};

// Runs all blocks, and returns at the end of the last. Throws MachineError at the first error. Module variables
// (.global, .const) of a kernel are mapped in `memory` when it first runs there. Thread-safe.
void run(const Launch& launch, DeviceMemory& memory);

// Address of a module's variable in `memory`; maps it if needed.
std::uint64_t variable_address(const GlobalVariable& variable, DeviceMemory& memory);

} // namespace triax::gpu_stand_in
