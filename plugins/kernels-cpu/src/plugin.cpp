// kernels-cpu: the door, and what the set says of itself.
#include "triax/plugin.hpp"

#include "kernels.hpp"

namespace triax::cpu {

namespace {

int threads_of(const PluginContext& context) {
  const auto asked = static_cast<int>(context.options.integer("threads"));
  return std::max(asked > 0 ? asked : context.threads, 1);
}

constexpr triax_option kOptions[] = {
    option_int("threads", "0", 0, 1024, "threads of this rank; 0: the cores divided among this machine's ranks")};

} // namespace

CpuKernels::CpuKernels(const PluginContext& context) : CpuKernels(threads_of(context), best_loops()) {
  context.log.debug("kernels-cpu: {} loops, threads = {}", loops_.name, threads_);
}

void CpuKernels::start(Device& device) {
  pool_ = std::make_unique<Pool>(threads_, Pump(device));
}

} // namespace triax::cpu

TRIAX_PLUGIN(triax::KernelSet, triax::cpu::CpuKernels, "kernels-cpu", "0.1.0",
             "oneDNN products in fixed tiles and vectorised loops, on this machine's cores", triax::cpu::kOptions)
