#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Image classification with the networks of torchvision: ResNet, VGG, GoogLeNet, Inception,
MobileNet, ShuffleNet.

Data: a folder in the layout of ImageNet (`train/CLASS/IMAGE`, or `CLASS/IMAGE`), or one with the
Python batches of CIFAR-10 (`data_batch_1` to `data_batch_5`). Published form: 224 x 224 pixels
(Inception 299), 1000 classes, SGD with rate 0.0125, momentum 0.9 and weight decay 5e-5 as in Muri's
programs. Tiny: small forms of the networks, 32 x 32 pixels (Inception 75), 10 classes.
"""

from common import Defaults, Task, make_parser, parse, run, seeded

import argparse
import pickle
from pathlib import Path
from typing import Any

import torch
import torchvision.datasets
import torchvision.models as models
from torch import Tensor, nn
from torch.utils.data import Dataset
from torchvision import transforms

DEFAULTS = Defaults(batch=(16, 256), samples=(512, 1_281_167), epochs=(3, 90))
ARCHITECTURES = {  # with the pixels of a side, tiny and published
    "resnet18": (32, 224), "resnet34": (32, 224), "resnet50": (32, 224), "resnet101": (32, 224),
    "vgg11": (32, 224), "vgg16": (32, 224), "vgg19": (32, 224),
    "googlenet": (32, 224), "inception_v3": (75, 299),
    "mobilenet_v2": (32, 224), "mobilenet_v3_small": (32, 224),
    "shufflenet_v2_x0_5": (32, 224), "shufflenet_v2_x1_0": (32, 224),
}
ALIASES = {"resnet": "resnet18", "vgg": "vgg16", "inception": "inception_v3",
           "mobilenet": "mobilenet_v2", "shufflenet": "shufflenet_v2_x1_0"}
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


# --------------------------------------------------------------------------------------- the models


def make_model(name: str, size: str, classes: int) -> nn.Module:
    if size == "published":
        extra = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
        return getattr(models, name)(num_classes=classes, **extra)
    if name.startswith("resnet"):
        block = models.resnet.BasicBlock if name in ("resnet18", "resnet34") \
            else models.resnet.Bottleneck
        return models.ResNet(block, [1, 1, 1, 1], num_classes=classes)
    if name.startswith("vgg"):
        return tiny_vgg(classes)
    if name.startswith("mobilenet_v2"):
        return models.mobilenet_v2(num_classes=classes, width_mult=0.25, dropout=0.0)
    if name in ("googlenet", "inception_v3"):
        model = getattr(models, name)(num_classes=classes, aux_logits=False, init_weights=False)
        model.dropout = nn.Identity()
        return model
    return getattr(models, name)(num_classes=classes)


def tiny_vgg(classes: int) -> nn.Module:
    """Not a `models.VGG`, whose classifier alone has 120 million weights before it is replaced."""
    widths: list[str | int] = [16, "M", 32, "M", 64, "M"]
    features = models.vgg.make_layers(widths, batch_norm=True)
    return nn.Sequential(features, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


def loss(model: nn.Module, batch: Any) -> Tensor:
    images, labels = batch
    outputs = model(images)
    if isinstance(outputs, Tensor):
        return nn.functional.cross_entropy(outputs, labels)
    # GoogLeNet and Inception judge at intermediate layers, too; weights as in their papers.
    names = [name for name in outputs._fields if name != "logits"]
    auxiliary = [getattr(outputs, name) for name in names if getattr(outputs, name) is not None]
    weight = 0.3 if len(auxiliary) > 1 else 0.4
    losses = [nn.functional.cross_entropy(each, labels) for each in auxiliary]
    return nn.functional.cross_entropy(outputs.logits, labels) + weight * sum(losses)


# ----------------------------------------------------------------------------------------- the data


class Synthetic(Dataset[Any]):
    """Each class has a pattern of 4 x 4 patches; an image is the pattern with noise."""

    def __init__(self, samples: int, pixels: int, classes: int, seed: int) -> None:
        self._samples, self._pixels, self._classes, self._seed = samples, pixels, classes, seed
        self._patterns = torch.randn(min(classes, 1000), 3, 4, 4, generator=seeded(seed))

    def __len__(self) -> int:
        return self._samples

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        label = index % self._classes
        pattern = self._patterns[label].unsqueeze(0)
        image = nn.functional.interpolate(pattern, size=self._pixels)[0]
        noise = torch.randn(image.shape, generator=seeded(self._seed, index))
        return image + 0.5 * noise, label


class Cifar10(Dataset[Any]):
    """The Python batches as published; unpickled with nothing but arrays and texts allowed."""

    def __init__(self, folder: Path, pixels: int) -> None:
        batches = [read_cifar_batch(path) for path in sorted(folder.glob("data_batch_*"))]
        self._images = torch.cat([images for images, _ in batches])
        self._labels = [label for _, labels in batches for label in labels]
        self._transform = transforms.Compose([
            transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(),
            transforms.Resize(pixels), transforms.ConvertImageDtype(torch.float32),
            transforms.Normalize(MEAN, DEVIATION)])

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self._transform(self._images[index]), self._labels[index]


class ArraysOnly(pickle.Unpickler):
    """A pickle may run any program; that of a data set needs arrays."""

    ALLOWED = {("numpy.core.multiarray", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype"),
               ("numpy._core.multiarray", "_reconstruct"), ("_codecs", "encode")}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in self.ALLOWED:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} does not belong into a CIFAR-10 batch")


def read_cifar_batch(path: Path) -> tuple[Tensor, list[int]]:
    with path.open("rb") as file:
        try:
            batch = ArraysOnly(file, encoding="latin1").load()
            data = torch.as_tensor(batch["data"])
            return data.reshape(-1, 3, 32, 32), [int(label) for label in batch["labels"]]
        except (pickle.UnpicklingError, KeyError, RuntimeError, EOFError) as error:
            raise SystemExit(f"{path}: is not a batch of CIFAR-10: {error!r}") from error


def read_folder(folder: Path, pixels: int) -> tuple[Dataset[Any], int]:
    """The data set and its number of classes."""
    for cifar in (folder, folder / "cifar-10-batches-py"):
        if (cifar / "data_batch_1").exists():
            return Cifar10(cifar, pixels), 10
    train = folder / "train" if (folder / "train").is_dir() else folder
    transform = transforms.Compose([
        transforms.RandomResizedCrop(pixels), transforms.RandomHorizontalFlip(),
        transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)])
    try:
        images = torchvision.datasets.ImageFolder(str(train), transform)
    except (FileNotFoundError, RuntimeError) as error:
        raise SystemExit(f"{folder}: has neither data_batch_1 (CIFAR-10) nor a folder of images "
                         f"for each class (ImageNet): {error}") from error
    return images, len(images.classes)


# ----------------------------------------------------------------------------------------- the task


def make_task(options: argparse.Namespace) -> Task:
    published = options.size == "published"
    pixels = options.pixels or ARCHITECTURES[options.arch][published]
    classes = 1000 if published else 10
    dataset: Dataset[Any]
    if options.data:
        dataset, classes = read_folder(options.data, pixels)
    else:
        dataset = Synthetic(options.samples, pixels, classes, options.seed)
    rate = options.learning_rate or 0.0125
    return Task(
        dataset=dataset, model=make_model(options.arch, options.size, classes), loss=loss,
        drop_last=True,  # batch normalisation cannot do with a single image
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=rate, momentum=0.9,
                                                     weight_decay=5e-5))


def main(arguments: list[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--arch", "-a", default="resnet18",
                        type=lambda name: ALIASES.get(name, name), choices=ARCHITECTURES)
    parser.add_argument("--pixels", type=int, metavar="N", help="of a side of an image")
    run(parse(parser, DEFAULTS, arguments), make_task)


if __name__ == "__main__":
    main()
