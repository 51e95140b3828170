"""Make everything that the laboratory needs; what is there already costs milliseconds."""

from pathlib import Path

from lab import cache, images
from lab.progress import LabError, Task, run_all, say
from lab.toolchain import base_image, broker, debian, go_programs, kubectl_helm, python_env


def tasks() -> list[Task]:
    """Return all parts in the order of their needs; what does not need another part is made beside it."""
    return [
        Task("debian packages", debian.install, log=debian.LOG),
        Task("python", python_env.make_environment, log=python_env.ENVIRONMENT.log),
        Task("kubernetes", go_programs.make, log=go_programs.PART.log),
        Task("broker", broker.make, log=broker.PART.log),
        Task("wheels", python_env.make_wheels, ("python",), python_env.WHEELS.log),
        Task("kubectl and helm", kubectl_helm.make, ("python",), kubectl_helm.PART.log),
        Task("base image", base_image.make, ("debian packages",), base_image.PART.log),
        Task("pause image", images.make_pause, ("kubernetes",)),
        Task("broker image", images.make_broker, ("broker",)),
        Task("operator image", images.make_operator, ("base image", "wheels"), images.OPERATOR_LOG),
    ]


def run(only: list[str]) -> None:
    """Make all parts, or those named in ``only`` with what they need; raises LabError when one fails."""
    chosen = with_needs(tasks(), only)
    if not any(part.is_present() for part in (go_programs.PART, broker.PART)) and not only:
        say("first setup: compiling Kubernetes and the broker takes 10 to 15 minutes on two cores")
    run_all(chosen)
    if not only:
        point_to_programs(cache.bin_dir())


def with_needs(everything: list[Task], names: list[str]) -> list[Task]:
    """Return the tasks with these names (no name: all) and those they need; LabError for a name that is none."""
    by_name = {task.name: task for task in everything}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise LabError(f"there is no part {', '.join(unknown)}; parts: {', '.join(by_name)}")
    wanted = list(names) or list(by_name)
    for name in wanted:
        wanted.extend(need for need in by_name[name].after if need not in wanted)
    return [task for task in everything if task.name in wanted]


def point_to_programs(directory: Path) -> None:
    """Give every program a link in one directory, so that others need no knowledge of the parts."""
    for part, programs in (
        (go_programs.PART, go_programs.PROGRAMS),
        (broker.PART, broker.PROGRAMS),
        (kubectl_helm.PART, kubectl_helm.PROGRAMS),
    ):
        for name in programs:
            cache.point(directory / name, part.path / name)
