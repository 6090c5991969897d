import nbformat
from nbformat.v4 import new_markdown_cell as md, new_code_cell as code
class Book:
    def __init__(self, stem, root="."):
        self.path=f"{root}/notebooks/{stem}.ipynb"; self.nb=nbformat.read(self.path,4)
        self.links=self.nb.cells[0].source.split("\n\n")[1]; self.C=[]
    def M(self,s): self.C.append(md(s.strip("\n")))
    def P(self,s,tags=None):
        c=code(s.strip("\n"))
        if tags: c.metadata["tags"]=tags
        self.C.append(c)
    def save(self):
        for i,c in enumerate(self.C): c["id"]=f"cell-{i:02d}"
        self.nb.cells=self.C; nbformat.write(self.nb,self.path)
