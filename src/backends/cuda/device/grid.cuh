// The beginning of a kernel whose blocks may come before the grid in front of it has ended (programmatic
// dependent launch, sm_90 and later): the card makes ready for one launch while another still runs.
#pragma once

namespace plimsoll::cuda {

// The first statement of every kernel. Until it returns a thread touches no memory of the card: the grids
// before it may still write there. From then on the next grid's blocks may come, and wait here too. On the
// host twin a thread that was let in early and has not been here ends the launch with an error.
__device__ __forceinline__ void begin_grid() {
#ifdef PLIMSOLL_HOST_TWIN
  twin::begin_grid();
#elif __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

}  // namespace plimsoll::cuda
