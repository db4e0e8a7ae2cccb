/* Every picture opens alone, in full size: on a narrow screen its text is small. */
document.addEventListener("DOMContentLoaded", () => {
  for (const picture of document.querySelectorAll("article img")) {
    if (picture.closest("a")) continue;
    const link = document.createElement("a");
    link.href = picture.src;
    link.title = "Open the picture in full size";
    picture.replaceWith(link);
    link.append(picture);
  }
});
